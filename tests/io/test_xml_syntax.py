"""XML that is not well-formed: repaired where other parsers read it, with warnings, and otherwise one clear line."""
import time
import warnings

import pytest

import liedyn as ld
from command_line import ok, run
from liedyn.io.robots.xml_elements import read_urdf_tree, read_xml, root_tag
from liedyn.io.robots.xml_syntax import HYPHENS, LATE_DECLARATION, MISSING_BLANK, lines_in_words, repair

URDF = """<?xml version="1.0"?>
<robot name="r">
  <link name="base"/>
  <link name="arm">
    <inertial>
      <origin xyz="0 0 -0.5"/>
      <mass value="1"/>
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/>
    </inertial>
  </link>
  <!-- the hinge -->
  <joint name="j" type="continuous">
    <parent link="base"/><child link="arm"/>
    <axis xyz="0 1 0"/>
  </joint>
</robot>
"""
MJCF = """<mujoco model="m"><worldbody><body name="b"><joint name="j" axis="0 1 0"/>
  <geom type="sphere" size=".1" mass="1" pos="0 0 -1"/></body></worldbody></mujoco>"""


@pytest.fixture
def read(tmp_path):
    def load(text, name="r.urdf"):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ld.LiedynWarning)
            return ld.load(tmp_path / name)
    return load


def swap(old: str, new: str, text: str = URDF) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


# --- repairs ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("text", "messages"), [
    (swap('"0.01" ixy', '"0.01"ixy'), [f"8: not valid XML, but read: {MISSING_BLANK}"]),
    (swap('ixy="0" ixz="0"', 'ixy="0"ixz=\'0\'').replace('"j" type', '"j"type'),
     [f"8: not valid XML, but read: {MISSING_BLANK}, also on line 12"]),
    (swap("<!-- the hinge -->", "<!-- the -- hinge ---><!--- it's <b a=\"1\"c> -->"),
     [f"11: not valid XML, but read: {HYPHENS}"]),
    (swap("<!-- the hinge -->", "<!-- the\n-- hinge -->").replace("<parent", '<foreign a="1"b="2"/><parent'),
     [f"11: not valid XML, but read: {HYPHENS}", f"14: not valid XML, but read: {MISSING_BLANK}"]),
    ("\n \n" + URDF, [f"3: not valid XML, but read: {LATE_DECLARATION}"]),
    ("\ufeff\r\n " + URDF, [f"2: not valid XML, but read: {LATE_DECLARATION}"]),
    ("\n" + swap('"0.01" ixy', '"0.01"ixy'),
     [f"2: not valid XML, but read: {LATE_DECLARATION}", f"9: not valid XML, but read: {MISSING_BLANK}"]),
    ("\n" + URDF.replace('"?>', '" encoding="iso-8859-1"?>').replace("hinge", "gel\xe4nk"),
     [f"2: not valid XML, but read: {LATE_DECLARATION}"])])
def test_what_other_parsers_read_is_read_with_a_warning(read, text, messages):
    model, strict = read(text.encode("iso-8859-1") if "8859" in text else text), read(URDF, "strict.urdf")
    assert model == strict and strict.warnings == ()
    found = [one for one in model.warnings if one.code == "invalid-xml"]
    assert [str(one) for one in found] == [f"{model.source}:{message} [invalid-xml]" for message in messages]
    assert {one.level for one in found} == {"warning"}


def test_lines_of_later_messages_are_those_of_the_file(read):
    text = "\n\n" + swap("<!-- the hinge -->", "<!-- a\n -- b\n -->").replace('"0.01" ixy', '"0.01"ixy')
    wrong = text.replace('type="continuous"', 'type="revolut"')
    with pytest.raises(ld.ModelError, match=r'r\.urdf:16: joint "j": unknown joint type'):
        read(wrong)
    with pytest.raises(ld.ModelError, match=r"r\.urdf:18: not valid XML: & is not the start of an entity"):
        read(text.replace('xyz="0 1 0"', 'xyz="0 1 &0"'))
    axis = read(text.replace('xyz="0 1 0"', 'xyz="0 2 0"')).warnings[-1]
    assert (axis.code, axis.place.line) == ("axis-not-unit", 18)


def test_mujoco_files_and_files_that_they_include(read, tmp_path):
    (tmp_path / "part.xml").write_text("<mujoco>\n" + swap('" mass', '"mass', MJCF)[18:])
    model = read("\n<?xml version='1.0'?>\n<!-- a -- b --><mujoco model='m'><include file='part.xml'/></mujoco>", "r.xml")
    assert model == read(MJCF, "strict.xml")
    assert [str(one) for one in model.warnings if one.code == "invalid-xml"] == [
        f"{tmp_path / 'r.xml'}:2: not valid XML, but read: {LATE_DECLARATION} [invalid-xml]",
        f"{tmp_path / 'r.xml'}:3: not valid XML, but read: {HYPHENS} [invalid-xml]",
        f"{tmp_path / 'part.xml'}:3: not valid XML, but read: {MISSING_BLANK} [invalid-xml]"]
    assert root_tag(tmp_path / "r.xml") == "mujoco"


def test_elements_of_other_tools_are_counted_once_in_a_repaired_file(read):
    model = read(swap("<joint", '<gazebo/><joint name="j"type="continuous"><unknown/></joint><!-- <joint').replace(
        "</joint>\n</robot>", "--></robot>").replace("<unknown/>", '<parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>'))
    assert [one.message for one in model.warnings if one.code == "urdf-not-read"] == ["not read: <gazebo> (1)"]


def test_check_and_load_report_repairs(tmp_path):
    path = tmp_path / "r.urdf"
    path.write_text(swap('"0.01" ixy', '"0.01"ixy'))
    result = run("check", path)
    assert result.exit_code == 4 and f"\n  {path}:8: not valid XML, but read: {MISSING_BLANK} [invalid-xml]\n" in result.stdout
    with pytest.warns(ld.LiedynWarning, match="invalid-xml"):
        ld.load(path)
    ok("convert", path, "-o", tmp_path / "r.yaml")


def test_valid_text_is_not_repaired():
    text = b"""<!----><!-- a - b --><a b="x'y" c='"d"'>it's "b"c <![CDATA[<d e="1"f="2">--]]> <?p q="1"r?></a>"""
    assert repair(text) == (text, {})


def test_further_lines_are_listed_up_to_a_limit():
    assert lines_in_words([3, 3]) == ""
    assert lines_in_words([3, 4]) == ", also on line 4"
    assert lines_in_words([1, 2, 3, 4]) == ", also on lines 2, 3 and 4"
    assert lines_in_words(range(1, 10)) == ", also on lines 2, 3, 4, 5, 6 and 3 more"


@pytest.mark.parametrize("unit", ["<!--", "<a b='1'c='", "<a ", '<a "', "<![CDATA[", "<?x ", "<!-- -- -->", '<a b=""c="">', "&",
                                  "\n", "-", "a=", "<!-- ", '"', "<a b=\""])
@pytest.mark.parametrize("head", ["<robot>", "<robot a='1'b='", "\n<?xml ", "<!--", "<robot ", "text"])
def test_time_is_linear(tmp_path, head, unit):
    """In quadratic time, a text of 300 kB would take more than a minute."""
    path, start = tmp_path / "r.urdf", time.process_time()
    path.write_text(head + unit * (300_000 // len(unit)))
    with pytest.raises(ld.ModelError):
        read_urdf_tree(path)
    assert time.process_time() - start < 10


# --- errors ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("text", "line", "message"), [
    ('<a b="x & y"/>', 1, "& is not the start of an entity (write &amp; for & and &lt; for <)"),
    ('<a b="&lol"/>', 1, "& is not the start of an entity"),
    ("<a>\nx & y</a>", 2, "& is not the start of an entity"),
    ("<a>x &; y</a>", 1, "& is not the start of an entity"),
    ('<a b="&amp;\n&lol;"/>', 2, "undefined entity &lol; (write &amp; for & and &lt; for <)"),
    ("<a>\n&nbsp;</a>", 2, "undefined entity &nbsp;"),
    ('<a b="&#0;"/>', 1, "&#0; is not a character of XML"),
    ('<a\nb="x<y"/>', 2, "< in the value of an attribute (write &lt;, or close the quotation mark)"),
    ('<a b="1>\n<c d="2"/>\n</a>', 1, "< in the value of an attribute (write &lt;, or close the quotation mark)"),
    ("<a>1 < 2</a>", 1, "< is not the start of a tag (write &lt;)"),
    ("< a/><a/>", 1, "< is not the start of a tag"),
    ("<a><1b/></a>", 1, "< is not the start of a tag"),
    ("<a></ b></a>", 1, "< is not the start of a tag"),
    ("<a></a b>", 1, "the tag </a> is not closed with >"),
    ("<a>\n<b\n<c/></a>", 2, "the tag <b> is not closed with >"),
    ("<a><b</a>", 1, "the tag <b> is not closed with >"),
    ("<a b=1/>", 1, "the value of the attribute b of <a> is not in quotation marks"),
    ("<a b = \u201c1\u201d/>", 1, "the value of the attribute b of <a> is not in quotation marks"),
    ("<a b/>", 1, "the attribute b of <a> has no value"),
    ('<a b"1"/>', 1, "the attribute b of <a> has no value"),
    ('<a b="1", c="2"/>', 1, "',' is not allowed in the tag <a>"),
    ('<a b="1""/>', 1, "'\"' is not allowed in the tag <a>"),
    ('<a b="1"/ >', 1, "' ' is not allowed in the tag <a>"),
    ('<a b="1" b="2"/>', 1, "duplicate attribute b"),
    ("<a>\n<b>\n</a>", 3, "</a> closes <b> of line 2"),
    ("</a><a/>", 1, "</a> closes an element that is not open"),
    ("<a>\n<b>\n", 3, "the file ends before </b>, which closes the element of line 2"),
    ("<!-- only -->", 1, "the file has no element"),
    ("text", 1, "text before the first element"),
    ("<?xml version='1.0'?>\n><a/>", 2, "text before the first element"),
    ("text<a/>", 1, "text before the first element"),
    ("<a/>\ntext", 2, "text or another element after the end of the first one (one root element)"),
    ("<a/><b/>", 1, "text or another element after the end of the first one"),
    ("<a>\n<!-- x", 2, "a comment is not closed with -->"),
    ("<a><![CDATA[x</a>", 1, "a CDATA section is not closed with ]]>"),
    ("<a>]]></a>", 1, "]]> in text (write ]]&gt;)"),
    ("<a>\n<!- x --></a>", 2, "<! is not the start of a comment (write <!-- comment -->)"),
    ("<a>\n<!-- x <b c='1'> -- y </a>", 2, "a comment is not closed with -->"),
    ("<?1?><a/>", 1, "'1' is not allowed in the tag <?1?>"),
    ('<a b"="m"/>', 1, "the attribute b of <a> has no value"),
    ('<a b="1" "c="m"/>', 1, "'\"' is not allowed in the tag <a>"),
    ('<a\n b="x', 2, "a quotation mark in the tag <a> is not closed"),
    ("<a>\n<b c='1'", 2, "the tag <b> is not closed with >"),
    ("\n<?xml version='1.0' encoding='klingon'?><a/>", 2, "the XML declaration is not at the start of the file"),
    ("\n<?xml version=1.0?><a/>", 2, "the XML declaration is not at the start of the file"),
    ("<!-- x --><?xml version='1.0'?><a/>", 1, "the XML declaration is not at the start of the file"),
    ("<?xml version=1.0?><a/>", 1, "the XML declaration is not correct"),
    ("<?xml version='1.0' <a/>", 1, "the XML declaration is not closed with ?>"),
    ("<?xml version='1.0' encoding='utf-16'?><a/>", 1, "the file is not in the encoding utf-16 of its XML declaration (save"),
    ("<?xml version='1.0' encoding='klingon'?><a/>", 1, "the encoding klingon is not supported (save the file as UTF-8)"),
    ("<?xml version='1.0' encoding='big5'?><a/>", 1, "the encoding big5 is not supported (save the file as UTF-8)"),
    (b"<a>\n\xe9t\xe9</a>", 2, "the byte 0xe9 is not a character in UTF-8 (save the file as UTF-8, or name its encoding in the"),
    (b"<?xml version='1.0' encoding='ascii'?><a b='\xe9'/>", 1, "the byte 0xe9 is not a character in ASCII"),
    (b"<a>\n\x07</a>", 2, r"the control character '\x07'"),
    ("<a>\ufffe</a>", 1, "the character U+FFFE, which XML does not allow"),
])
def test_errors_name_the_cause_in_words_and_the_line(tmp_path, text, line, message):
    path = tmp_path / "r.urdf"
    path.write_bytes((text if isinstance(text, bytes) else text.encode()).replace(b"<a", b"<robot").replace(b"</a", b"</robot"))
    message = message.replace("<a>", "<robot>").replace("/a>", "/robot>")
    with pytest.raises(ld.ModelError) as caught:
        read_xml(path, 50)
    assert str(caught.value).startswith(f"{path}:{line}: not valid XML: {message}") and "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["<secret a=1/>", "<x><secret></x>", "<x>&secret;</x>", "<x a='1' a='2'/>"])
def test_files_of_another_kind_are_not_quoted(tmp_path, text):
    path = tmp_path / "r.urdf"
    path.write_text(text)
    with pytest.raises(ld.ModelError, match=r":1: not valid XML: [a-z ()-]*$") as caught:
        read_xml(path, 50)
    assert "secret" not in str(caught.value)


def test_entities_are_not_expanded_in_a_repaired_text(tmp_path):
    bomb = '\n<?xml version="1.0"?>\n<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]>\n<robot name="&b;"x="1"/>'
    (tmp_path / "r.urdf").write_text(bomb)
    with pytest.raises(ld.ModelError, match=r":3: a DOCTYPE is not accepted"):
        ld.load(tmp_path / "r.urdf")
