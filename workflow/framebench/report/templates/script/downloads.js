// Save each figure as a file of its own, with the colours of the page and no external resources.
const fileOf = (svg) => {
  const copy = svg.cloneNode(true);
  for (const unseen of copy.querySelectorAll("[pointer-events]")) unseen.remove();
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const style = getComputedStyle(document.documentElement);
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const ground = document.createElementNS(drawing, "rect");
  for (const [key, value] of Object.entries({ width, height, fill: "var(--panel)" })) ground.setAttribute(key, value);
  copy.prepend(ground);
  copy.setAttribute("font-family", "DejaVu Sans, Noto Sans, Roboto, sans-serif");
  const text = new XMLSerializer().serializeToString(copy);
  return {
    width,
    height,
    text: text.replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim()),
  };
};

const save = (blob, name) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
};

const saveFigure = async (figure, kind) => {
  const svg = [...figure.querySelectorAll("svg")].find((one) => one.getClientRects().length);
  const { width, height, text } = fileOf(svg);
  const title = figure.querySelector("h3, h4").textContent;
  const name = `${title.toLowerCase().replace(/[^a-z0-9.]+/g, "-").replace(/^-|-$/g, "")}.${kind}`;
  const drawnAs = new Blob([text], { type: "image/svg+xml" });
  if (kind === "svg") return save(drawnAs, name);
  const image = new Image();
  image.src = URL.createObjectURL(drawnAs);
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * width, 2 * height]; // twice the resolution, for print and dense screens
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  canvas.toBlob((blob) => save(blob, name), "image/png");
};

const addDownloads = () => {
  for (const figure of document.querySelectorAll("figure")) {
    if (figure.querySelector(".take")) continue;
    const title = escaped(figure.querySelector("h3, h4").textContent);
    const buttons = ["svg", "png"].map(
      (kind) => `<button type="button" data-save="${kind}" aria-label="Save ${title} as ${kind.toUpperCase()}">${kind.toUpperCase()}</button>`,
    );
    figure.append(elementOf(`<p class="take">${buttons.join(" ")}</p>`));
  }
};
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-save]");
  if (button) saveFigure(button.closest("figure"), button.dataset.save);
});
