// Pictures and videos of what is drawn.

function saveAs(name, blob, ending) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name.replace(/[^\w.-]+/g, "_") + ending });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// What is drawn, with an alpha channel: from a picture on black and one on white.
function cutOut(viewer) {
  const { gl, canvas } = viewer.drawing, { width, height } = canvas;
  const [black, white] = ["#000000", "#ffffff"].map((back) => {
    viewer.draw(back);
    const bytes = new Uint8Array(4 * width * height);
    gl.readPixels(0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
    return bytes;
  });
  viewer.draw();
  const copy = Object.assign(document.createElement("canvas"), { width, height }), g = copy.getContext("2d");
  const picture = g.createImageData(width, height), row = 4 * width;
  for (let i = 0; i < black.length; i += 4) {
    const to = (height - 1 - Math.floor(i / row)) * row + i % row;                  // rows of WebGL begin below
    const alpha = 255 - (white[i] - black[i] + white[i + 1] - black[i + 1] + white[i + 2] - black[i + 2]) / 3;
    for (let k = 0; k < 3; k++) picture.data[to + k] = alpha > 0 ? 255 * black[i + k] / alpha : 0;
    picture.data[to + 3] = alpha;
  }
  g.putImageData(picture, 0, 0);
  return copy;
}

// Plays once and saves that, as the browser encodes it.
function record(viewer) {
  if (viewer.recorder) { viewer.recorder.stop(); return; }
  const kind = ["video/mp4", "video/webm"].find((one) => window.MediaRecorder?.isTypeSupported(one)), parts = [];
  if (!kind) { Object.assign($("record"), { title: "This browser does not record.", disabled: true }); return; }
  viewer.recorder = new MediaRecorder($("view").captureStream(), { mimeType: kind, videoBitsPerSecond: 12e6 });
  viewer.recorder.ondataavailable = ({ data }) => parts.push(data);
  viewer.recorder.onstop = () => {
    viewer.recorder = null;
    $("record").classList.remove("on");
    viewer.play(false);
    saveAs(viewer.title, new Blob(parts, { type: kind }), `.${kind.slice(6)}`);
  };
  $("record").classList.add("on");
  viewer.play(false);
  viewer.seek(viewer.start);
  viewer.recorder.onstart = () => viewer.play(true);
  viewer.recorder.start();
}

function endRecording(viewer) {                             // the encoder is behind: the last frame stays for a moment
  viewer.play(false);
  const { recorder } = viewer;
  setTimeout(() => { if (recorder.state !== "inactive") recorder.stop(); }, 300);
}

// Without controls, for videos that are made frame by frame.
function film(viewer) {
  viewer.play(false);
  viewer.filmed = true;
  document.documentElement.classList.add("film");
}

async function still(viewer, time) {                        // drawn and shown when the promise is kept
  viewer.seek(time);
  $("caption").textContent = printed(`${viewer.title}   ${viewer.time.toFixed(2)} s   ${viewer.phaseAt(viewer.time)}`);
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}
