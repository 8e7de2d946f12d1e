const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const kinds = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i2: Int16Array, f4: Float32Array };

// Base64 of little-endian numbers.
function unpack(text, kind) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new kinds[kind](bytes.buffer);
}

function element(name, text, ...children) {
  const made = document.createElement(name);
  if (text !== null) made.textContent = text;
  made.append(...children);
  return made;
}

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const className = (c) => (c >= 0 ? `class ${c}` : "no label");
const count = (n) => n.toLocaleString("en");
const short = (v) => (v === 0 ? "0" : Math.abs(v) >= 0.001 && Math.abs(v) < 1e4 ? String(Number(v.toPrecision(3))) : v.toExponential(1));

// What has to be drawn again when the page's size or colors change.
const drawings = [];
const drawAll = () => drawings.forEach((draw) => draw());

// A canvas in device pixels whose context counts in CSS pixels.
function fit(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

// -- light and dark --------------------------------------------------------------------------------
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
const root = document.documentElement;
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);

function showTheme() {
  byId("theme").textContent = isDark() ? "Light" : "Dark";
  byId("theme").setAttribute("aria-label", isDark() ? "Switch to light colors" : "Switch to dark colors");
  byId("theme").setAttribute("aria-pressed", String(isDark()));
  drawAll();
}
byId("theme").addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  showTheme();
});
prefersDark.addEventListener("change", showTheme);
