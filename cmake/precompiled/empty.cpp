// SPDX-License-Identifier: BSD-3-Clause
// The translation unit that a precompiled header is compiled with.
