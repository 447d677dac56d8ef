# SPDX-License-Identifier: BSD-3-Clause
"""The parts of bench/run.py: processes run in turn (driver), figures (stats), the two benchmarks
(micro, file), percentiles (latency), pictures (plot, latency_plot)."""
