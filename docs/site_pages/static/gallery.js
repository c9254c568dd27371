// Clips of the gallery whose scenario can be simulated in the browser: a button replaces the moving picture by the live page.

document.addEventListener("DOMContentLoaded", () => {
  const canSimulate = typeof WebAssembly === "object" && document.createElement("canvas").getContext("webgl2");
  for (const video of canSimulate ? document.querySelectorAll("video[data-live]") : []) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Simulate in the browser" });
    const frame = document.createElement("div");
    frame.className = "live";
    video.replaceWith(frame);
    frame.append(video, button);
    button.addEventListener("click", () => {
      const theme = document.documentElement.dataset.theme === "dark" ? "dark" : "light", address = video.dataset.live;
      const page = Object.assign(document.createElement("iframe"), { src: `${address}#embedded&${theme}`,
        title: video.getAttribute("aria-label") });
      const link = Object.assign(document.createElement("a"), { href: address, target: "_blank",
        textContent: "Open with sliders and plots" });
      frame.replaceChildren(page, link);
    });
  }
});
