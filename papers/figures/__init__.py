# SPDX-License-Identifier: BSD-3-Clause
"""The papers' figures, measured again: one module per paper (rewind.py), each with a list of
Figures (figure.py)."""
