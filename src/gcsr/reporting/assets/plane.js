// A canvas on the square from -1 to 1 that can be moved, zoomed and asked what is under the pointer.
function plane(canvas, paint, hover) {
  const view = { zoom: 1, x: 0, y: 0 };
  const tip = canvas.parentElement.querySelector(".tip");
  const margin = 26;
  const below = canvas.parentElement.querySelector(".zoom") ? 54 : margin;
  let shown = null;
  let held = null;

  function draw() {
    const { context, width, height } = fit(canvas);
    const free = [width - 2 * margin, height - margin - below];
    const least = Math.min(...free);
    const scale = (view.zoom * least) / 2;
    // Neither axis means anything: the picture may use some more of the longer side.
    const [across, down] = free.map((side) => Math.min(1.5, side / least));
    const at = (px, py) => [width / 2 + (px * across - view.x) * scale, (height + margin - below) / 2 + (py * down - view.y) * scale];
    shown = { width, height, scale, at };
    paint(context, shown);
  }

  function zoom(factor) {
    view.zoom = Math.min(12, Math.max(0.8, view.zoom * factor));
    draw();
  }
  function reset() {
    Object.assign(view, { zoom: 1, x: 0, y: 0 });
    draw();
  }
  function place(event) {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }
  function showTip(lines, x, y) {
    tip.hidden = !lines;
    if (!lines) return;
    tip.replaceChildren(...lines.map((line) => element("div", line)));
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 14, shown.width - box.width - 6))}px`;
    tip.style.top = `${Math.max(4, y + 16 + box.height > shown.height ? y - box.height - 10 : y + 16)}px`;
  }

  canvas.addEventListener("pointerdown", (event) => {
    held = { from: place(event), x: view.x, y: view.y };
    if (event.pointerType === "mouse") canvas.setPointerCapture(event.pointerId);
    showTip(hover(...place(event), shown, true), ...place(event));
  });
  canvas.addEventListener("pointerup", () => (held = null));
  canvas.addEventListener("pointercancel", () => (held = null));
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = place(event);
    if (held && (event.pointerType === "mouse" || view.zoom > 1)) {
      view.x = held.x - (x - held.from[0]) / shown.scale;
      view.y = held.y - (y - held.from[1]) / shown.scale;
      if (Math.hypot(x - held.from[0], y - held.from[1]) > 3) {
        showTip(null);
        draw();
      }
      return;
    }
    showTip(hover(x, y, shown, false), x, y);
  });
  canvas.addEventListener("pointerleave", () => {
    showTip(null);
    hover(null, null, shown, false);
  });
  // Plain scrolling stays the page's.
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2);
  }, { passive: false });
  drawings.push(draw);
  return { draw, zoom, reset };
}

// The point nearest to (x, y) within reach, or -1; points are x and y in turn, in 1/32767.
function nearestPoint(points, x, y, view, reach, skip) {
  let best = -1;
  let least = reach * reach;
  for (let i = 0; i < points.length / 2; i++) {
    if (skip && skip(i)) continue;
    const [px, py] = view.at(points[2 * i] / 32767, points[2 * i + 1] / 32767);
    const far = (px - x) ** 2 + (py - y) ** 2;
    if (far < least) [best, least] = [i, far];
  }
  return best;
}
