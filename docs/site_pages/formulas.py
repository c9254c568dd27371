"""Formulas of the site as MathML, which browsers draw without scripts, with a font that the site contains."""
from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

from docutils.nodes import SkipNode
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml

# Latin, accents, Greek, punctuation, arrows and operators, brackets, mathematical alphabets
_CHARACTERS = ((0x20, 0x7e), (0xa0, 0xff), (0x2b0, 0x3ff), (0x2010, 0x20ff), (0x2100, 0x22ff), (0x27e6, 0x27ef),
               (0x1d400, 0x1d7ff))
# A letter with its accent, in a row of its own: docutils would set an index below the letter.
_ACCENTED = re.compile(r"\\(d*dot|hat|bar|tilde|widehat|widetilde|overline)(?![A-Za-z])\s*(\{[^{}]*\}|\\[A-Za-z]+|\w)")
# Accents of one letter: browsers place what is not called an accent above the letter, without an overlap.
_ACCENT = re.compile(r'<mover accent="(?:true|false)">(\s*<mi.*?</mi>\s*)<mo[^>]*>([˙¨ˆ˜¯^~]+)</mo>', re.DOTALL)


def mathml(tex: str, block: bool = False) -> str:
    """A formula of LaTeX as MathML. Raises `MathError` for commands that are not supported."""
    if block and r"\\" in tex and r"\begin" not in tex:
        tex = rf"\begin{{aligned}}{tex}\end{{aligned}}"
    out = tex2mathml(_ACCENTED.sub(r"{\\\1{\2}{}}", tex), as_block=block)
    out = out.replace('<mtable class="ams-align">', '<mtable class="ams-align" displaystyle="true">')
    return _ACCENT.sub(r'<mover>\1<mo class="accent" stretchy="false">\2</mo>', out)


def write_font(app) -> None:
    """The mathematical characters of STIX Two Math (SIL Open Font License), which ziamath contains."""
    from fontTools import subset

    options = subset.Options(flavor="woff", layout_features=["ssty", "dtls", "flac", "kern", "ccmp"], notdef_outline=True)
    font = subset.load_font(str(files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf"), options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=[code for first, last in _CHARACTERS for code in range(first, last + 1)])
    subsetter.subset(font)
    folder = Path(app.outdir, "_static")
    folder.mkdir(parents=True, exist_ok=True)
    subset.save_font(font, str(folder / "math.woff"), options)


def _written(node, block: bool) -> str:
    try:
        return mathml(node.astext().strip(), block)
    except (MathError, LookupError) as error:             # docutils raises the second for scripts without a base
        from sphinx.util import logging

        logging.getLogger(__name__).warning("%s in the formula %r", error, node.astext(), location=node)
        return ""


def _inline(translator, node) -> None:
    translator.body.append(_written(node, block=False))
    raise SkipNode


def _block(translator, node) -> None:
    translator.body.append(f'<div class="formula">{_written(node, block=True)}</div>\n')
    raise SkipNode


def setup(app) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("builder-inited", write_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
