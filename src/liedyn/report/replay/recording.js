// Pictures and videos of what is drawn.

function saveAs(name, blob, ending) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name.replace(/[^\w.-]+/g, "_") + ending });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
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
