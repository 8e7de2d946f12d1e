// A class is a color and, beyond eight, a shape: distinguishable also without seeing colors.
const light = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8a7a1a", "#55555f"];
const dark = ["#4a9fe0", "#f2b134", "#2fc59a", "#e8a0cc", "#f07f3c", "#a9dcff", "#d9cd4e", "#c4c4cf"];
const shapes = [circle, square, triangle, diamond, cross];

const colorOf = (c) => (c < 0 ? css("--soft") : (isDark() ? dark : light)[c % 8]);
const shapeOf = (c) => (c < 0 ? circle : shapes[Math.floor(c / 8) % shapes.length]);

function circle(g, x, y, r) { g.arc(x, y, r, 0, 2 * Math.PI); }
function square(g, x, y, r) { g.rect(x - 0.86 * r, y - 0.86 * r, 1.72 * r, 1.72 * r); }
function triangle(g, x, y, r) {
  g.moveTo(x, y - 1.15 * r); g.lineTo(x + 1.08 * r, y + 0.8 * r); g.lineTo(x - 1.08 * r, y + 0.8 * r); g.closePath();
}
function diamond(g, x, y, r) {
  g.moveTo(x, y - 1.25 * r); g.lineTo(x + 1.1 * r, y); g.lineTo(x, y + 1.25 * r); g.lineTo(x - 1.1 * r, y); g.closePath();
}
function cross(g, x, y, r) {
  const [a, b] = [0.42 * r, 1.1 * r];
  const way = [[-a, -b], [a, -b], [a, -a], [b, -a], [b, a], [a, a], [a, b], [-a, b], [-a, a], [-b, a], [-b, -a], [-a, -a]];
  way.forEach(([dx, dy], i) => (i ? g.lineTo(x + dx, y + dy) : g.moveTo(x + dx, y + dy)));
  g.closePath();
}

function mark(g, c, x, y, r, edge) {
  g.beginPath();
  shapeOf(c)(g, x, y, r);
  g.fillStyle = colorOf(c);
  g.fill();
  if (edge) {
    g.strokeStyle = edge;
    g.stroke();
  }
}

// Classes are highlighted in all drawings at once.
let chosenClass = null;
const faded = (c) => chosenClass !== null && c !== chosenClass;

function legend(holder, classes) {
  for (const c of classes) {
    const icon = document.createElement("canvas");
    const button = element("button", null, icon, className(c));
    button.type = "button";
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
      chosenClass = chosenClass === c ? null : c;
      for (const other of holder.children) other.setAttribute("aria-pressed", String(other === button && chosenClass === c));
      drawAll();
    });
    holder.append(button);
    drawings.push(() => mark(fit(icon).context, c, 8, 8, 5.5));
  }
}
