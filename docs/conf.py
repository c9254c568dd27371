"""The site: `make docs` builds it from these pages, the commands, the tables of keys and the docstrings. Nothing is fetched."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from site_pages.docstrings import as_rst, is_noise
from site_pages.gallery import LIVE, write_live_pages
from site_pages.marks import filled

from liedyn import __version__

project = "liedyn"
author = "the authors of liedyn"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon",
              "site_pages.formulas"]
exclude_patterns = ["site_pages"]

myst_heading_anchors = 4                     # links such as running.md#long-runs, as code hosts make them
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
html_math_renderer = "mathml"

default_role = "py:obj"                      # `name` in a docstring: a link to it, where it is public
autosummary_generate = False
autodoc_mock_imports = ["jax", "torch"]      # liedyn.interop imports them; the site does not need them
autodoc_typehints = "none"                   # docstrings give shapes, units and frames
autodoc_class_signature = "separated"
napoleon_google_docstring = False
napoleon_use_ivar = True                     # attributes that are properties, too, have one entry
napoleon_use_rtype = False
napoleon_use_param = False                   # arguments of one description, such as v and a, are one entry

html_theme = "pydata_sphinx_theme"
html_title = "liedyn"
html_static_path = ["site_pages/static"]
html_css_files = ["site.css"]
html_js_files = ["gallery.js"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],        # no icons of hosts
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [], "footer_end": [],
    "show_prev_next": True,
    "search_as_you_type": True,
    "navigation_with_keys": False,
}


def add_live_pages(app, error):
    if error is None and app.builder.format == "html":
        write_live_pages(Path(app.outdir) / "_static" / LIVE)


def setup(app):
    app.connect("build-finished", add_live_pages)
    app.connect("source-read", lambda app, name, text: text.__setitem__(0, filled(text[0])))
    app.connect("autodoc-process-docstring", lambda app, what, name, thing, options, lines:
                lines.__setitem__(slice(None), as_rst(what, lines)), priority=400)          # before napoleon
    app.connect("autodoc-skip-member", lambda app, what, name, member, skip, options: is_noise(name, member) or None)
