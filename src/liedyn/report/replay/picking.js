// Links by mouse: their names, and which one is followed.

const NEAR = 30;                                            // pixels

// The link whose origin or centre of mass is drawn nearest to a point of the picture; -1 where none is near.
function pick({ main, camera, followed }, { offsetX, offsetY }, { clientWidth, clientHeight }) {
  const { view } = camera.look(followed()), found = { link: -1, gap: NEAR };
  for (const { link, body, p } of main.handles) {
    const [x, y, , w] = projected(view, moved(main.body(body), p));
    const gap = Math.hypot((x / w + 1) / 2 * clientWidth - offsetX, (1 - y / w) / 2 * clientHeight - offsetY);
    if (w > 0 && gap < found.gap) Object.assign(found, { link, gap });
  }
  return found.link;
}

function addPicking(viewer) {
  const canvas = $("view");
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons) return;
    const link = pick(viewer, event, canvas), name = link < 0 ? "" : printed(viewer.main.links[link].name);
    if (canvas.title !== name) canvas.title = name;
  });
  canvas.addEventListener("dblclick", (event) => {
    const link = pick(viewer, event, canvas);
    if (link < 0) viewer.resetView(); else viewer.setFollow(link);
  });
}
