# SPDX-License-Identifier: BSD-3-Clause
"""The papers' figures, measured again: one module a paper (rewind.py), each a list of Figures
(figure.py)."""
