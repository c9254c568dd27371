# ruff: noqa
"""Rewraps prose comments at column 0, and docstring prose, of lines that are too long."""
import pathlib, re, subprocess, sys, textwrap
out = subprocess.run(["ruff", "check", "src", "tests", "docs", "--select", "E501", "--output-format", "concise"], capture_output=True, text=True).stdout
places = {}
for line in out.splitlines():
    m = re.match(r"(.+?):(\d+):\d+: E501", line)
    if m: places.setdefault(m[1], []).append(int(m[2]) - 1)
for path, rows in places.items():
    lines = pathlib.Path(path).read_text().split("\n")
    for r in sorted(rows, reverse=True):
        if len(lines[r]) <= 130: continue
        head = re.match(r"\s*(# )?", lines[r])[0]
        if "#" in head and head[0] == "#":
            first = last = r
            plain = lambda k: re.match(re.escape(head) + r"\S", lines[k]) and not lines[k].startswith(head + "- ")
            while last + 1 < len(lines) and plain(last + 1): last += 1
            while first > 0 and plain(first - 1): first -= 1
            # keep earlier lines as they are: wrap from r on
            text = " ".join(x[len(head):] for x in lines[r:last + 1])
            lines[r:last + 1] = textwrap.wrap(text, 130, initial_indent=head, subsequent_indent=head, break_long_words=False, break_on_hyphens=False)
        else:
            stripped = lines[r].strip()
            if r < next((k for k, x in enumerate(lines) if k and x.endswith('"""')), 0):       # the module's docstring
                last = r
                while lines[last + 1].strip() and '"""' not in lines[last + 1]: last += 1
                lines[r:last + 1] = textwrap.wrap(" ".join(lines[r:last + 1]), 130, break_long_words=False, break_on_hyphens=False)
                continue
            if stripped.startswith('"""') and not stripped.endswith('"""'):
                last = r
                while '"""' not in lines[last][len(head) + 3:] and lines[last + 1].strip() and lines[last+1].startswith(head) and not lines[last+1].startswith(head + " "): last += 1
                text = " ".join(x.strip() for x in lines[r:last + 1])
                lines[r:last + 1] = textwrap.wrap(text, 130, initial_indent=head, subsequent_indent=head, break_long_words=False, break_on_hyphens=False)
    pathlib.Path(path).write_text("\n".join(lines))
