for (const button of document.querySelectorAll("[data-copies]")) {
  button.addEventListener("click", async () => {
    const source = byId(button.dataset.copies);
    getSelection().selectAllChildren(source);
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Selected";
    }
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
}
if (data.graph) startGraph(data.graph);
if (data.map) startMap(data.map);
for (const canvas of document.querySelectorAll("[data-heat]")) {
  const own = data.heat[canvas.dataset.heat];
  startHeat(canvas, own || data[canvas.dataset.heat], own && data.heat.order);
}
showTheme();
new ResizeObserver(drawAll).observe(document.body);
root.dataset.ready = "true";
