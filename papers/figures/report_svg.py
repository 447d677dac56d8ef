# SPDX-License-Identifier: BSD-3-Clause
"""A figure's picture as SVG for the report's page: small, with its letters as text, its own ids,
and the same bytes each time.

The page has one style for all pictures, so matplotlib's fonts of each text are removed, as is
everything that nothing refers to. The names of the lines are not in the picture: they are below it,
where they wrap.
"""

import io
import re
import xml.etree.ElementTree as ET

from matplotlib.markers import MarkerStyle

from report.plot import pyplot

from .picture import canvas, is_grid, shown

SVG, XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
WIDTH = 4.4  # inches, 72 units each: on a phone 400 pixels wide a unit is 1.1 pixels
FONT = 8.4  # units
# Its letters are wider than the page's, so that what fits here fits there.
FAMILY = "DejaVu Sans"
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")


def _drawn(figure, points):
    plt = pyplot()
    settings = {
        "font.size": FONT, "axes.labelsize": FONT, "xtick.labelsize": FONT, "ytick.labelsize": FONT,
        "axes.titlesize": FONT, "font.family": FAMILY, "svg.fonttype": "none",
        "svg.hashsalt": figure.row, "axes.linewidth": 0.6, "axes.titlepad": 5
    }
    with plt.rc_context(settings):
        fig, axes = canvas(plt, figure, points, WIDTH)
        for ax in axes:
            title = ax.get_title(loc="left")
            if figure.bars:
                ax.set_xlabel("" if is_grid(figure, points) else figure.y)
            else:
                if ax is axes[-1] or len(axes) == 1 or ax in axes[-2:]:
                    ax.set_xlabel(figure.x)
                if len(axes) == 1:
                    # Above the axis it fits on a phone; beside the axis it would take space from
                    # the picture.
                    ax.set_title(figure.y, loc="left")
                else:
                    ax.set_title(title, loc="left", fontweight="bold")
        if len(axes) > 1:
            fig.supylabel(figure.y, fontsize=FONT)
        fig.tight_layout(pad=0.4, h_pad=0.9)
        out = io.BytesIO()
        fig.savefig(out, format="svg",
                    metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
        plt.close(fig)
    return ET.fromstring(out.getvalue())


def _rounded(text):
    return _NUMBER.sub(
        lambda m: f"{round(float(m[0]), 2):g}"
        if abs(float(m[0])) < 1000 else f"{float(m[0]):.1f}", text)


def _text_style(element):
    """Keeps of matplotlib's `font: 700 8.4px 'DejaVu Sans', ...; text-anchor: middle` what the page
    does not define itself."""
    kept = []
    for part in element.get("style", "").split(";"):
        name, _, value = part.partition(":")
        if name.strip() == "font":
            size = re.search(r"([\d.]+)px", value)[1]
            kept += [f"font-size:{size}px"
                     ] + (["font-weight:700"] if re.match(r"\s*(bold|700)", value) else [])
        elif name.strip() == "text-anchor":
            kept.append(f"text-anchor:{value.strip()}")
    element.set("style", ";".join(kept))


def picture(figure, points, description):
    """Returns the <svg>, to be put into a page."""
    root = _drawn(figure, shown(figure, points))
    for parent in root.iter():
        for child in list(parent):
            if child.tag in (SVG + "metadata", SVG + "style") or child.tag is ET.Comment:
                parent.remove(child)
    refers = {}  # old id -> new id
    for element in root.iter():
        for value in element.attrib.values():
            for old in [
                    *_REFERENCE.findall(value),
                    *([value[1:]] if value.startswith("#") and
                      not re.fullmatch(r"#[0-9a-fA-F]{6}", value) else [])
            ]:
                refers.setdefault(old, f"{figure.row}-{len(refers)}")
    for element in root.iter():
        for name, value in list(element.attrib.items()):
            if name == "id" and value not in refers:
                del element.attrib["id"]
            elif name == "id":
                element.set("id", refers[value])
            elif name == XLINK + "href":
                # It names a part of the picture, or is an image itself: a grid's colours.
                del element.attrib[name]
                element.set("href", value if value.startswith("data:") else "#" + refers[value[1:]])
            elif "url(#" in value:
                element.set(name, _REFERENCE.sub(lambda m: f"url(#{refers[m[1]]})", value))
            elif name in ("d", "x", "y", "transform", "points", "width", "height", "viewBox",
                          "style"):
                element.set(name, _rounded(value))
        if element.tag == SVG + "text":
            _text_style(element)
        element.text = (element.text or "").strip() or None
        element.tail = None
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    title, told = ET.Element(SVG + "title"), ET.Element(SVG + "desc")
    title.text, told.text = f"{figure.row}: {figure.title}", description
    title.set("id", f"{figure.row}-title")
    told.set("id", f"{figure.row}-desc")
    root[:0] = [title, told]
    root.set("role", "img")
    root.set("aria-labelledby", f"{figure.row}-title {figure.row}-desc")
    ET.register_namespace("", SVG[1:-1])
    return ET.tostring(root, encoding="unicode")


def swatch(colour, mark):
    """The mark of a line's name: as it is drawn, or a square."""
    if mark is None:
        inside = f'<rect x="1" y="1" width="10" height="10" fill="{colour}"/>'
    else:
        shape = MarkerStyle(mark)
        outline = shape.get_path().transformed(shape.get_transform()).to_polygons()[0]
        reach = max(abs(number) for pair in outline for number in pair)
        corners = " ".join(f"{6 + 4.5 * x / reach:.1f},{6 - 4.5 * y / reach:.1f}"
                           for x, y in outline[::max(1,
                                                     len(outline) // 24)])
        inside = (
            f'<path d="M-4 6H16" stroke="{colour}" stroke-width="1.4"/><polygon '
            f'points="{corners}" fill="{colour}"/>')
    return (
        f'<svg class="swatch" viewBox="{"0 0 12 12" if mark is None else "-4 0 20 12"}" '
        f'aria-hidden="true">{inside}</svg>')
