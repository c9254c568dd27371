"""Syntax of XML files: repairs of what other parsers accept, and causes of syntax errors in plain words.

URDF and MuJoCo files are read by parsers (tinyxml2) that accept text which is not well-formed XML. `repair` changes such a text
so that a strict parser accepts it. Line numbers remain those of the file.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from xml.parsers import expat

from liedyn.errors import ModelError, Place, first_of

_MARK = b"\xef\xbb\xbf"              # byte order mark
_LONGEST = 60                        # characters of a name in an error
_NEAR = 1000                         # characters around an error that are searched for its cause
_LISTED = 5                          # lines that a warning names
_ENCODINGS = ("utf-8", "us-ascii", "iso-8859-1")         # of files whose XML declaration may be late
_ENTITIES = (b"amp", b"lt", b"gt", b"quot", b"apos")

MISSING_BLANK = "a space is missing between two attributes"
HYPHENS = "-- within a comment"
LATE_DECLARATION = "spaces or empty lines before the XML declaration"

# Repairs ----------------------------------------------------------------------------------------------------------------

_LATE = re.compile(rb"""\s+(<\?xml\s+version\s*=\s*["'][\d.]+["'][^<>?]*\?>)""")
_NAME_START = re.compile(rb"[A-Za-z_:\x80-\xff]")
_DELIMITER = re.compile(rb"""[<>"']""")


def repair(text: bytes) -> tuple[bytes, dict[str, list[int]]]:
    """Return the text with repairs, and the lines of each kind of repair. Each byte is visited once.

    A blank is added between two attributes, hyphens in comments that contain `--` become blanks, and the XML declaration is moved
    before blanks and blank lines. The rest of a text whose quotation marks or comments are not closed is not repaired.
    """
    mark = _MARK if text.startswith(_MARK) else b""
    text = text.removeprefix(mark)
    lines: dict[str, list[int]] = {}
    if (late := _LATE.match(text)) and (declared_encoding(late[1]) or "utf-8").lower() in _ENCODINGS:
        start, end = late.span(1)
        lines[LATE_DECLARATION] = [_line(text, start)]
        text = text[start:end] + text[:start] + text[end:]
    pieces, copied, line = [mark], 0, 1

    def replace(start: int, end: int, new: bytes, kind: str) -> None:
        nonlocal copied, line
        line += text.count(b"\n", copied, start)
        lines.setdefault(kind, []).append(line)
        line += new.count(b"\n")
        pieces.extend((text[copied:start], new))
        copied = end

    position = text.find(b"<")
    while position >= 0:
        if text.startswith(b"<!--", position):
            start, end = position + 4, text.find(b"-->", position + 4)
            if end >= 0 and (b"--" in text[start:end] or text[end - 1:end] == b"-") and end > start:
                replace(start, end, text[start:end].replace(b"-", b" "), HYPHENS)
        elif text.startswith((b"<![CDATA[", b"<?"), position):
            end = text.find(b"]]>" if text[position + 1] == ord("!") else b"?>", position)
        else:
            end = _end_of_unquoted(text, position + 1)
            while (quote := text[end:end + 1]) in (b'"', b"'") and (end := text.find(quote, end + 1)) >= 0:
                end += 1
                if _NAME_START.match(text, end):
                    replace(end, end, b" ", MISSING_BLANK)
                end = _end_of_unquoted(text, end)
        position = text.find(b"<", end) if end >= 0 else -1
    return b"".join((*pieces, text[copied:])), lines


def _end_of_unquoted(text: bytes, start: int) -> int:
    """Return the position of the next quotation mark, < or >, or the end of the text."""
    delimiter = _DELIMITER.search(text, start)
    return delimiter.start() if delimiter else len(text)


def lines_in_words(lines: Sequence[int]) -> str:
    """Return the further lines of a repair as text, such as ", also on lines 3 and 4"; empty without further ones."""
    further = [str(line) for line in dict.fromkeys(lines)][1:]
    if not further:
        return ""
    first, count = first_of(further, _LISTED)
    further = [*first, f"{count} more"] if count else further
    listed = " and ".join(filter(None, (", ".join(further[:-1]), further[-1])))
    return f", also on line{'s' * (len(further) > 1)} {listed}"


# Causes of errors -------------------------------------------------------------------------------------------------------

Cause = tuple[str, str | None, int | None]           # in words, what to do, and the line, or None: where the parser stopped

_WORDS: dict[str | None, tuple[str, str | None]] = {
    expat.errors.XML_ERROR_SYNTAX: ("text before the first element", None),
    expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT: (
        "text or another element after the end of the first one", "one root element"),
    expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION: ("a CDATA section is not closed with ]]>", None),
    expat.errors.XML_ERROR_MISPLACED_XML_PI: ("the XML declaration is not at the start of the file", None),
    expat.errors.XML_ERROR_XML_DECL: ("the XML declaration is not correct", 'write <?xml version="1.0" encoding="UTF-8"?>'),
}
_ROOTS = (b"robot", b"mujoco", b"mujocoinclude")
_KNOWN_ROOT = re.compile(rb"<(?:%b)\b" % b"|".join(_ROOTS))
_QUOTES = re.compile(r"<[^\s!?]|&\S|'|(?:attribute|encoding) \S")      # in the words of a cause: names from the file
_REFERENCE = re.compile(rb"&([^;\s<>&\"']*);?")
_OPEN_REFERENCE = re.compile(rb"&#?\w*\Z")
_ENCODING = re.compile(rb"""<\?xml[^>]*\bencoding\s*=\s*["']([\w.-]+)""")
_TOKENS = re.compile(rb"""["'>]""")
_UNQUOTED = re.compile(rb"""([^\s=<>"'/]+)\s*=\s*\Z""")
_WITHOUT_VALUE = re.compile(rb"""\s([^\s=<>"'/]+)\s*\Z""")
_ESCAPE = "write &amp; for & and &lt; for <"


def syntax_error(problem: expat.ExpatError, index: int, text: bytes, file: str, open: Sequence[tuple[str, int]]) -> ModelError:
    """Return the error for a text that is not well-formed, with its cause and line.

    index  where the parser stopped
    open   tags and lines of the elements that are open there
    """
    words, hint, line = _cause(problem, index, text, open)
    is_robot = open[0][0].encode() in _ROOTS if open else _KNOWN_ROOT.search(text)
    if not is_robot and _QUOTES.search(words):                      # a file of another kind is not quoted
        words, hint = f"{expat.ErrorString(problem.code)}", None
    return ModelError(f"not valid XML: {words}", place=Place(file, line or problem.lineno), hint=hint)


def encoding_error(text: bytes, file: str) -> ModelError:
    """Return the error for an encoding that the parser does not know."""
    name = declared_encoding(text) or "unknown"
    return ModelError(f"not valid XML: the encoding {name} is not supported", place=Place(file, _line(text, text.find(b"<?xml"))),
                      hint="save the file as UTF-8")


def _cause(problem: expat.ExpatError, index: int, text: bytes, open: Sequence[tuple[str, int]]) -> Cause:
    rest, kind = text[index:index + _NEAR], expat.ErrorString(problem.code)
    if kind in _WORDS:
        return (*_WORDS[kind], None)
    match kind:
        case expat.errors.XML_ERROR_TAG_MISMATCH:
            tag, line = open[-1]
            return f"</{_name(rest)}> closes <{_cut(tag)}> of line {line}", None, None
        case expat.errors.XML_ERROR_NO_ELEMENTS if open:
            tag, line = open[-1]
            return f"the file ends before </{_cut(tag)}>, which closes the element of line {line}", None, None
        case expat.errors.XML_ERROR_NO_ELEMENTS:
            return "the file has no element", None, None
        case expat.errors.XML_ERROR_DUPLICATE_ATTRIBUTE:
            return f"duplicate attribute {_name(rest)}", None, None
        case expat.errors.XML_ERROR_UNDEFINED_ENTITY:
            return _undefined_entity(index, text)
        case expat.errors.XML_ERROR_BAD_CHAR_REF:
            return f"{_name(rest)} is not a character of XML", None, None
        case expat.errors.XML_ERROR_UNCLOSED_TOKEN:
            return _unclosed(index, text)
        case expat.errors.XML_ERROR_INCORRECT_ENCODING:
            return f"the file is not in the encoding {declared_encoding(text)} of its XML declaration", "save it as UTF-8", None
        case expat.errors.XML_ERROR_INVALID_TOKEN | expat.errors.XML_ERROR_PARTIAL_CHAR:
            return _invalid_character(rest) or _invalid_encoding(index, text) or _invalid_token(index, text, bool(open))
        case _:
            return str(kind), None, None


def _undefined_entity(index: int, text: bytes) -> Cause:
    for reference in _REFERENCE.finditer(text, index):
        if reference[1] not in _ENTITIES and not reference[1].startswith(b"#"):
            return f"undefined entity {_name(reference[0])}", _ESCAPE, _line(text, reference.start())
    return "undefined entity", _ESCAPE, None


def _unclosed(index: int, text: bytes) -> Cause:
    if text.startswith(b"<!--", index):
        return "a comment is not closed with -->", None, None
    if text.startswith(b"<?", index):
        return "the XML declaration is not closed with ?>", None, None
    _, quote = _context(text, index, len(text))
    if quote is not None:
        return f"a quotation mark in the tag <{_tag(text, index)}> is not closed", None, _line(text, quote)
    return f"the tag <{_tag(text, index)}> is not closed with >", None, None


def _invalid_character(rest: bytes) -> Cause | None:
    if rest[:1] < b" " and rest[:1] not in b"\t\n\r":
        return f"the control character {rest[:1].decode()!r}", None, None
    if rest.startswith((b"\xef\xbf\xbe", b"\xef\xbf\xbf")):
        return f"the character U+{ord(rest[:3].decode()):X}, which XML does not allow", None, None
    return None


def _invalid_encoding(index: int, text: bytes) -> Cause | None:
    byte, encoding = text[index:index + 1], (declared_encoding(text) or "UTF-8").upper()
    if byte < b"\x80" or encoding not in ("UTF-8", "UTF8", "US-ASCII", "ASCII"):
        return None
    try:
        text[index:index + 4].decode(encoding)
    except UnicodeDecodeError as problem:
        if problem.start == 0:
            return f"the byte 0x{byte.hex()} is not a character in {encoding}", \
                "save the file as UTF-8, or name its encoding in the XML declaration", None
    return None


def _invalid_token(index: int, text: bytes, is_inside: bool) -> Cause:
    """Return the cause of a character that does not continue the markup or text before it."""
    comment, start, at = text.rfind(b"<!--", 0, index), text.rfind(b"<", 0, index), text[index:index + 4]
    if start < 0:
        return "text before the first element", None, None
    if comment >= 0 and text.find(b"-->", comment, index) < 0:
        return _unclosed(comment, text)[0], None, _line(text, comment)
    prefix = text[max(start, index - _NEAR):index]
    if (reference := _OPEN_REFERENCE.search(prefix)) is not None:
        return "& is not the start of an entity", _ESCAPE, _line(text, index - len(reference[0]))
    is_in_tag, quote = _context(text, start, index)
    if quote is not None and at.startswith(b"<"):
        return "< in the value of an attribute", "write &lt;, or close the quotation mark", _line(text, quote)
    if prefix in (b"<", b"</"):
        if prefix == b"<" and at.startswith(b"/") and not is_inside:
            return f"<{_name(text[index:index + _NEAR])}> closes an element that is not open", None, None
        return "< is not the start of a tag", "write &lt;", None
    if not is_in_tag and prefix.endswith(b"]]"):
        return "]]> in text", "write ]]&gt;", None
    if not is_in_tag:
        return f"{_character(at)} is not allowed in text" if is_inside else "text before the first element", None, None
    return _invalid_in_tag(start, at, prefix, text)


def _invalid_in_tag(start: int, at: bytes, prefix: bytes, text: bytes) -> Cause:
    """Return the cause of a character, outside quotation marks, that does not continue the tag that begins at `start`."""
    tag = _tag(text, start)
    if tag.startswith("!"):
        return "<! is not the start of a comment", "write <!-- comment -->", None
    if at.startswith(b"<") or tag.startswith("/"):
        return f"the tag <{tag}> is not closed with >", None, _line(text, start)
    if (attribute := _UNQUOTED.search(prefix)) is not None:
        return f"the value of the attribute {_name(attribute[1])} of <{tag}> is not in quotation marks", None, None
    if (attribute := _WITHOUT_VALUE.search(prefix)) is not None and not at.startswith(b"="):
        return f"the attribute {_name(attribute[1])} of <{tag}> has no value", None, None
    return f"{_character(at)} is not allowed in the tag <{tag}>", None, None


def _context(text: bytes, start: int, end: int) -> tuple[bool, int | None]:
    """Return whether the tag that begins at `start` contains `end`, and the position of the quotation mark that is open there."""
    quote = None
    for token in _TOKENS.finditer(text, start, end):
        if quote is None:
            if token[0] == b">":
                return False, None
            quote = token
        elif token[0] == quote[0]:
            quote = None
    return True, None if quote is None else quote.start()


def _tag(text: bytes, start: int) -> str:
    return _name(text[start + 1:start + _NEAR].lstrip())


def _name(text: bytes) -> str:
    """Return the name, tag or reference at the beginning of a text."""
    name = re.match(rb"/?[^\s<>=\"'/]+", text)
    return _cut(name[0].decode(errors="replace")) if name else ""


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST else name[:_LONGEST - 1] + "…"


def _character(text: bytes) -> str:
    return repr(text.decode(errors="ignore")[:1])


def _line(text: bytes, index: int) -> int:
    return text.count(b"\n", 0, max(index, 0)) + 1


def declared_encoding(text: bytes) -> str | None:
    """Return the encoding in the XML declaration of a text, or None."""
    declaration = _ENCODING.match(text.removeprefix(_MARK).lstrip())
    return declaration[1].decode() if declaration else None
