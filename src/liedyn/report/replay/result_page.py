"""The page of results in memory, and how notebooks show one."""
from __future__ import annotations

import html
from collections.abc import Sequence

from liedyn.report.replay.page import Look, replay_page
from liedyn.report.replay.sources import shown_result
from liedyn.report.replay.visuals import visuals_of
from liedyn.simulation.run import Result

_MOST = 4_000_000       # characters that are shown inline: a notebook keeps them
_HEIGHT = 560           # pixels


def replay_of(result: Result, *, against: Sequence[Result] = (), beside: bool = False, traces: Sequence[str] = (),
              follow: str = "", speed: float = 1.0, meshes: bool = False, package_roots: Sequence[str] = (),
              inline: bool = False) -> str:
    """HTML page that shows a simulated motion in 3D, as `liedyn replay` writes it: offline, in any browser.

    Parameters
    ----------
    result : Result
    against : sequence of Result
        Other results, drawn as ghosts.
    beside : bool
        Whether the others are drawn beside the first one instead.
    traces : sequence of str
        Links of the first one whose paths are drawn.
    follow : str
        Link of the first one that the camera follows.
    speed : float
        Playback speed: seconds of motion per second.
    meshes : bool
        Whether the meshes of the URDF are drawn.
    package_roots : sequence of paths
        Further folders in which to look for ``package://`` meshes.
    inline : bool
        Whether the page is made a frame of another page, as in notebooks; if it has more than 4 MB, the frame says instead how to
        write it to a file.

    Returns
    -------
    str

    Raises
    ------
    NameLookupError
        For an unknown link.
    UsageError
        If there are no meshes, or nothing to read them with.

    Examples
    --------
    >>> run = ld.simulate("robots/double_pendulum.yaml", duration=0.1, q0=[0.3, 0.0])
    >>> page = ld.replay_of(run, traces=["tip"])
    >>> Path("replay.html").write_text(page, encoding="utf-8") > 10_000
    True
    """
    results = [result, *against]
    runs = [shown_result(one, f"{one.model.name} {k}" if against else one.model.name) for k, one in enumerate(results, start=1)]
    visuals, _ = visuals_of([one.model for one in results], package_roots) if meshes else (None, ())
    page = replay_page(runs, Look(result.model.name, tuple(traces), follow, beside, speed), visuals)
    return _in_a_frame(page, result) if inline else page


def _in_a_frame(page: str, result: Result) -> str:
    if len(page) > _MOST:
        return (f"<pre>{html.escape(repr(result))}</pre><p>Its replay takes {len(page) / 1e6:.0f} MB and is not shown here: "
                "<code>run.replay(\"replay.html\")</code> writes it.</p>")
    title = html.escape(repr(result), quote=True)
    return (f'<iframe srcdoc="{html.escape(page, quote=True)}" title="{title}" sandbox="allow-scripts allow-downloads" '
            f'width="100%" height="{_HEIGHT}" style="border: 1px solid #8885"></iframe>')
