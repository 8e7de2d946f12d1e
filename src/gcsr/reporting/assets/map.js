function startMap(m) {
  const real = unpack(m.real, "i2");
  const realNodes = unpack(m.real_nodes, "u4");
  const realClasses = unpack(m.real_classes, "i2");
  const made = unpack(m.condensed, "i2");
  const madeClasses = unpack(m.condensed_classes, "i2");
  const canvas = byId("map-canvas");
  const boxes = { real: byId("show-real"), condensed: byId("show-condensed") };
  let chosen = -1;

  function paint(context, view) {
    const place = (points, i) => view.at(points[2 * i] / 32767, points[2 * i + 1] / 32767);
    if (boxes.real.checked) {
      const size = realClasses.length > 6000 ? 1.4 : realClasses.length > 2500 ? 1.9 : 2.4;
      for (let i = 0; i < realClasses.length; i++) {
        context.globalAlpha = faded(realClasses[i]) ? 0.06 : 0.5;
        mark(context, realClasses[i], ...place(real, i), size);
      }
    }
    context.globalAlpha = 1;
    if (boxes.condensed.checked) {
      const size = Math.max(3.5, Math.min(6.5, 60 / Math.sqrt(madeClasses.length)));
      context.lineWidth = 1.6;
      for (let i = 0; i < madeClasses.length; i++) {
        context.globalAlpha = faded(madeClasses[i]) ? 0.12 : 1;
        mark(context, madeClasses[i], ...place(made, i), i === chosen ? size * 1.8 : size, css("--ink"));
      }
      context.globalAlpha = 1;
    }
  }

  function hover(x, y, view) {
    if (x === null) return null;
    if (boxes.condensed.checked) {
      const i = nearestPoint(made, x, y, view, 10);
      if (i >= 0) return [`condensed node ${i}`, className(madeClasses[i])];
    }
    if (boxes.real.checked) {
      const i = nearestPoint(real, x, y, view, 7, (k) => faded(realClasses[k]));
      if (i >= 0) return [`real node ${realNodes[i]}`, className(realClasses[i])];
    }
    return null;
  }

  const board = plane(canvas, paint, hover);
  for (const box of Object.values(boxes)) box.addEventListener("change", board.draw);
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) {
      const n = madeClasses.length;
      chosen = chosen < 0 ? (step > 0 ? 0 : n - 1) : (chosen + step + n) % n;
      byId("map-words").textContent = `Condensed node ${chosen}, ${className(madeClasses[chosen])}`;
    } else if (event.key === "Escape") {
      chosen = -1;
      byId("map-words").textContent = "";
    } else if (event.key === "+" || event.key === "=") board.zoom(1.25);
    else if (event.key === "-") board.zoom(0.8);
    else if (event.key === "0") board.reset();
    else return;
    event.preventDefault();
    board.draw();
  });
}
