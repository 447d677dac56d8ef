// SPDX-License-Identifier: BSD-3-Clause
// The translation unit that precompiled.hpp is compiled with.
