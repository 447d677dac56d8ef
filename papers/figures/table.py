# SPDX-License-Identifier: BSD-3-Clause
"""A figure's points as a table, places by series, and the format of its numbers."""


def series_of(points):
    return list(dict.fromkeys(p.series for p in points))


def places_of(figure, points):
    places = list(dict.fromkeys(p.x for p in points))
    return places if figure.bars else sorted(places)


def number(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def place(x):
    return x if isinstance(x, str) else f"{x:g}"


def note_of(document, medium):
    """The machine and medium on which the figure was measured."""
    facts = document["machine"]
    return (
        f"{facts['cpu']}, {facts['cpus']} CPUs; {facts['file_system']}; {medium}; median of "
        f"{document['rounds']} rounds, load {facts['load']:.1f} at their start; "
        f"{facts['revision']}")
