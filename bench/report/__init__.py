# SPDX-License-Identifier: BSD-3-Clause
"""What bench/run.py is made of: processes run in turn (driver), figures (stats), the two benchmarks
(micro, file), pictures (plot)."""
