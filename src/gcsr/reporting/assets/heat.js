function startHeat(canvas, h, order) {
  const values = unpack(h.data, "u1");
  const classes = unpack(h.classes, "i2");
  const rows = order ? unpack(order, "u2") : null;
  const both = h.low < 0;
  const band = 9;
  const figure = canvas.closest("figure");
  const words = figure.querySelector("[data-words]");
  const ramp = figure.querySelector(".ramp");
  ramp.classList.toggle("both", both);
  ramp.firstElementChild.textContent = short(h.low);
  ramp.lastElementChild.textContent = short(h.high);
  const valueOf = (step) => h.low + ((h.high - h.low) * step) / 255;

  const channels = (color) => [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16));
  function table() {
    const [low, high, cold] = ["--heat-low", "--heat-high", "--cold"].map((name) => channels(css(name)));
    const zero = both ? 127.5 : 0;
    return Array.from({ length: 256 }, (_, step) => {
      const share = step >= zero ? (step - zero) / (255 - zero) : (zero - step) / zero;
      const end = step >= zero ? high : cold;
      return low.map((from, i) => Math.round(from + (end[i] - from) * Math.sqrt(share)));
    });
  }

  drawings.push(() => {
    const { context, width, height } = fit(canvas);
    const colors = table();
    const image = new ImageData(h.size, h.size);
    for (let i = 0; i < values.length; i++) image.data.set([...colors[values[i]], 255], 4 * i);
    const picture = document.createElement("canvas");
    picture.width = picture.height = h.size;
    picture.getContext("2d").putImageData(image, 0, 0);
    const [wide, high] = [width - band, height - band];
    context.imageSmoothingEnabled = h.size > wide;
    context.drawImage(picture, band, band, wide, high);
    // Which class rows and columns are of, along two sides.
    for (let i = 0; i < h.size; ) {
      let end = i;
      while (end < h.size && classes[end] === classes[i]) end++;
      const [x, y] = [band + (wide * i) / h.size, band + (high * i) / h.size];
      context.fillStyle = colorOf(classes[i]);
      context.fillRect(x, 0, (wide * (end - i)) / h.size - 1, band - 3);
      context.fillRect(0, y, band - 3, (high * (end - i)) / h.size - 1);
      if (i) {
        context.fillStyle = css("--card");
        context.globalAlpha = 0.8;
        context.fillRect(x - 0.5, band, 1, high);
        context.fillRect(band, y - 0.5, wide, 1);
        context.globalAlpha = 1;
      }
      i = end;
    }
  });

  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const at = (place, size) => Math.floor(((place - band) / (size - band)) * h.size);
    const [row, column] = [at(event.clientY - box.top, box.height), at(event.clientX - box.left, box.width)];
    if (row < 0 || column < 0 || row >= h.size || column >= h.size) return;
    const name = (i) => (rows && h.size === data.heat.nodes ? `node ${rows[i]}, ${className(classes[i])}` : className(classes[i]));
    const step = values[row * h.size + column];
    const beyond = step === 255 && row === column && rows ? "at least " : "";
    words.textContent = `${name(row)} × ${name(column)}: ${beyond}${short(valueOf(step))}`;
  });
  canvas.addEventListener("pointerleave", () => (words.textContent = words.dataset.words));
}
