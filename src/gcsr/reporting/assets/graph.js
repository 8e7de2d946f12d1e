function startGraph(g) {
  const places = unpack(g.places, "i2");
  const classes = unpack(g.classes, "i2");
  const from = unpack(g.from, "u2");
  const to = unpack(g.to, "u2");
  const weights = unpack(g.weights, "f4");
  const diagonal = unpack(g.diagonal, "f4");
  const near = g.nearest && {
    count: g.nearest.count,
    nodes: unpack(g.nearest.nodes, "u4"),
    classes: unpack(g.nearest.classes, "i2"),
    distances: unpack(g.nearest.distances, "f4"),
  };
  // Every node's edges, strongest first, as the edges themselves are.
  const edgesOf = Array.from({ length: g.nodes }, () => []);
  for (let e = 0; e < from.length; e++) {
    edgesOf[from[e]].push(e);
    edgesOf[to[e]].push(e);
  }
  const other = (e, node) => (from[e] === node ? to[e] : from[e]);
  const canvas = byId("graph-canvas");
  const slider = byId("threshold");
  const steps = Number(slider.max);
  let drawn = 0;
  let chosen = -1;
  let hovered = -1;

  // The slider goes through the edges: quickly where they are weak and many, slowly where few.
  const edgesAt = (value) => Math.round(from.length * (1 - value / steps) ** 2);
  function threshold() {
    let shown = Math.max(Math.min(1, from.length), edgesAt(Number(slider.value)));
    // Edges of one weight come and go together.
    while (shown < from.length && weights[shown] === weights[shown - 1]) shown++;
    drawn = shown;
    const counter = byId("drawn");
    const left = drawn ? weights[drawn - 1] : 0;
    counter.replaceChildren(element("b", drawn ? short(left) : "–"), ` · ${count(drawn)} of ${count(g.edges_in_all)} edges`);
    slider.setAttribute("aria-valuetext", `weight at least ${short(left)}, ${drawn} edges`);
    canvas.dataset.edges = String(drawn);
  }

  const radius = Math.max(3, Math.min(9, 60 / Math.sqrt(g.nodes)));
  const spot = (view, i) => view.at(places[2 * i] / 32767, places[2 * i + 1] / 32767);

  function paint(context, view) {
    const focus = hovered >= 0 ? hovered : chosen;
    const ink = css("--ink");
    const spots = Array.from({ length: g.nodes }, (_, i) => spot(view, i));
    const strongest = weights[0] || 1;
    const crowd = Math.min(1, 14 / Math.sqrt(drawn + 1));
    // A few strokes of equal width instead of one per edge.
    const bands = 10;
    context.strokeStyle = ink;
    for (let band = 0; band < bands; band++) {
      context.beginPath();
      for (let e = drawn - 1; e >= 0; e--) {
        const strength = Math.sqrt(weights[e] / strongest);
        if (Math.min(bands - 1, Math.floor(strength * bands)) !== band) continue;
        if (faded(classes[from[e]]) && faded(classes[to[e]])) continue;
        context.moveTo(...spots[from[e]]);
        context.lineTo(...spots[to[e]]);
      }
      const share = (band + 1) / bands;
      context.lineWidth = (0.5 + 2.2 * share) * Math.max(0.35, crowd);
      context.globalAlpha = (focus >= 0 ? 0.35 : 1) * (0.1 + 0.55 * share * crowd);
      context.stroke();
    }
    context.globalAlpha = 1;
    const friends = new Set();
    if (focus >= 0) {
      context.strokeStyle = css("--accent");
      for (const e of edgesOf[focus]) {
        if (e >= drawn) break;
        friends.add(other(e, focus));
        context.lineWidth = 1 + 3 * Math.sqrt(weights[e] / strongest);
        context.beginPath();
        context.moveTo(...spots[from[e]]);
        context.lineTo(...spots[to[e]]);
        context.stroke();
      }
    }
    const edge = css("--card");
    context.lineWidth = 1.25;
    const r = radius * Math.min(1.8, Math.sqrt(view.scale / 230));
    for (let i = 0; i < g.nodes; i++) {
      const dim = faded(classes[i]) || (focus >= 0 && i !== focus && !friends.has(i));
      context.globalAlpha = dim ? 0.28 : 1;
      mark(context, classes[i], ...spots[i], r, edge);
    }
    context.globalAlpha = 1;
    if (focus >= 0) {
      context.lineWidth = 2.5;
      mark(context, classes[focus], ...spots[focus], r * 1.5, ink);
      label(context, view, focus, spots, friends);
    }
    canvas.dataset.node = String(chosen);
  }

  // Weights at the ends of the strongest edges of the node in focus.
  function label(context, view, focus, spots) {
    context.font = "600 12px system-ui, sans-serif";
    context.textBaseline = "middle";
    const taken = [];
    for (const e of edgesOf[focus].slice(0, 6)) {
      if (e >= drawn) break;
      const words = short(weights[e]);
      const width = context.measureText(words).width + 8;
      const [[ax, ay], [bx, by]] = [spots[focus], spots[other(e, focus)]];
      const [x, y] = [ax + (bx - ax) * 0.62 - width / 2, ay + (by - ay) * 0.62];
      if (taken.some(([u, v, w]) => Math.abs(v - y) < 17 && x < u + w && u < x + width)) continue;
      taken.push([x, y, width]);
      context.fillStyle = css("--card");
      context.fillRect(x, y - 8, width, 16);
      context.fillStyle = css("--accent");
      context.fillText(words, x + 4, y + 1);
    }
  }

  function describe(node) {
    const title = byId("node-title");
    const facts = byId("node-facts");
    if (node < 0) {
      title.textContent = from.length ? "Strongest edges" : "No node chosen";
      const rows = Array.from(from.slice(0, 8), (_, e) => row(`${pointed(from[e])} – ${pointed(to[e])}`, short(weights[e])));
      facts.replaceChildren(element("p", "Point at a node, or step through them, to see its own."), element("ul", null, ...rows));
      return;
    }
    const icon = document.createElement("canvas");
    icon.style.cssText = "width:20px;height:20px";
    title.replaceChildren(icon, `Node ${node}, ${className(classes[node])}`);
    mark(fit(icon).context, classes[node], 10, 10, 7);
    const degree = edgesOf[node].filter((e) => e < drawn).length;
    const parts = [element("p", `${count(degree)} edges drawn, weight to itself ${short(diagonal[node])}`)];
    if (edgesOf[node].length) {
      const rows = edgesOf[node].slice(0, 5).map((e) => row(`node ${other(e, node)}, ${className(classes[other(e, node)])}`, short(weights[e])));
      parts.push(element("h4", "Strongest neighbors: weight"), element("ul", null, ...rows));
    }
    if (near) {
      const rows = [];
      for (let k = node * near.count; k < (node + 1) * near.count; k++) {
        rows.push(row(`real node ${near.nodes[k]}, ${className(near.classes[k])}`, short(near.distances[k])));
      }
      parts.push(element("h4", "Nearest real training nodes: distance"), element("ul", null, ...rows));
    } else {
      parts.push(element("p", "Nearest real nodes are not known without the real graph."));
    }
    facts.replaceChildren(...parts);
  }
  const pointed = (node) => `node ${node} (${classes[node] < 0 ? "–" : classes[node]})`;
  const row = (name, value) => element("li", null, element("span", name), element("span", value));

  function hover(x, y, view, pressed) {
    const before = hovered;
    hovered = x === null ? -1 : nearestPoint(places, x, y, view, 16);
    if (pressed && hovered >= 0) chosen = hovered;
    if (hovered !== before || pressed) {
      describe(hovered >= 0 ? hovered : chosen);
      board.draw();
    }
    if (hovered >= 0) {
      const best = edgesOf[hovered][0];
      const lines = [`node ${hovered}, ${className(classes[hovered])}`];
      if (best !== undefined) lines.push(`strongest edge: ${short(weights[best])} to node ${other(best, hovered)}`);
      if (near) lines.push(`nearest real node: ${near.nodes[hovered * near.count]}`);
      return lines;
    }
    if (x === null) return null;
    const e = edgeUnder(x, y, view);
    return e < 0 ? null : [`node ${from[e]} – node ${to[e]}`, `weight ${short(weights[e])}`];
  }

  function edgeUnder(x, y, view) {
    for (let e = 0; e < drawn; e++) {
      const [ax, ay] = spot(view, from[e]);
      const [bx, by] = spot(view, to[e]);
      const [dx, dy] = [bx - ax, by - ay];
      const share = Math.max(0, Math.min(1, ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy || 1)));
      if (Math.hypot(ax + share * dx - x, ay + share * dy - y) < 3) return e;
    }
    return -1;
  }

  function choose(node) {
    chosen = node;
    hovered = -1;
    describe(chosen);
    board.draw();
  }

  const board = plane(canvas, paint, hover);
  const keys = {
    ArrowRight: () => choose((chosen + 1) % g.nodes),
    ArrowDown: () => choose((chosen + 1) % g.nodes),
    ArrowLeft: () => choose(chosen <= 0 ? g.nodes - 1 : chosen - 1),
    ArrowUp: () => choose(chosen <= 0 ? g.nodes - 1 : chosen - 1),
    Home: () => choose(0),
    End: () => choose(g.nodes - 1),
    Enter: () => chosen >= 0 && edgesOf[chosen].length && choose(other(edgesOf[chosen][0], chosen)),
    Escape: () => choose(-1),
    "+": () => board.zoom(1.25),
    "=": () => board.zoom(1.25),
    "-": () => board.zoom(0.8),
    0: () => board.reset(),
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  byId("zoom-in").addEventListener("click", () => board.zoom(1.25));
  byId("zoom-out").addEventListener("click", () => board.zoom(0.8));
  byId("zoom-reset").addEventListener("click", () => board.reset());
  slider.addEventListener("input", () => {
    threshold();
    if (chosen >= 0) describe(chosen);
    board.draw();
  });
  // Three edges per node are a calm beginning.
  const wanted = Math.min(from.length, 3 * g.nodes);
  slider.value = String(from.length ? Math.round(steps * (1 - Math.sqrt(wanted / from.length))) : 0);
  threshold();
  const present = [...new Set(classes)].sort((a, b) => (a < 0 ? 1 : b < 0 ? -1 : a - b));
  legend(byId("legend"), present);
  describe(-1);
}
