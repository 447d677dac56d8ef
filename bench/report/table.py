# SPDX-License-Identifier: BSD-3-Clause
"""Plain-text tables and the format of their numbers."""


def millions(spread):
    return ("" if spread is None else
            f"{short(spread.median / 1e6)} ({short(spread.low / 1e6)}..{short(spread.high / 1e6)})")


def thousands(spread):
    return ("" if spread is None else
            f"{short(spread.median / 1e3)} ({short(spread.low / 1e3)}..{short(spread.high / 1e3)})")


def short(x):
    """Formats with three significant digits and no exponent."""
    return f"{x:.0f}" if abs(x) >= 100 else f"{x:.1f}" if abs(x) >= 10 else f"{x:.2f}" if abs(
        x) >= 0.1 else f"{x:.3f}"


def times(spread, unit=""):
    return "" if spread is None else factor(spread.median) + unit


def factor(x):
    """Formats a ratio: two digits after the point, more if it is small."""
    return f"{x:.2f}" if x >= 0.095 else f"{x:.2g}"


def per(value, of, digits):
    return "" if value is None or not of else f"{value / of:.{digits}f}"


def count(value):
    return "" if value is None else f"{value:.0f}"


def percent(value, of):
    return "" if value is None or not of else f"{value / of:.1%}"


def show(head, rows):
    """`head`: a column's title, or a pair of lines. The first column is left-aligned, the others
    are right-aligned."""
    pairs = [h if isinstance(h, tuple) else ("", h) for h in head]
    widths = [
        max(len(x) for x in (*pair, *(row[i] for row in rows))) for i, pair in enumerate(pairs)
    ]

    def line(cells):
        return "  " + "  ".join(
            c.ljust(w) if i == 0 else c.rjust(w)
            for i, (c, w) in enumerate(zip(cells, widths))).rstrip()

    for part in (0, 1):
        if any(pair[part] for pair in pairs):
            print(line([pair[part] for pair in pairs]))
    for row in rows:
        print(line(row))


def show_aims(verdicts):
    """`verdicts`: (text, wanted, spread or None)."""
    rows = []
    for text, wanted, found in verdicts:
        if found is None:
            rows.append([text, f"{wanted:g}", "not measured", ""])
        else:
            rows.append([
                text, f"{wanted:g}", f"{found.median:.2f} ({found.low:.2f}..{found.high:.2f})",
                "met" if found.median >= wanted else "MISSED"
            ])
    show(["", "aim", "found (min..max)", ""], rows)
    known = [(w, f) for _, w, f in verdicts if f is not None]
    print(f"  {sum(f.median >= w for w, f in known)} of {len(known)} aims met")
