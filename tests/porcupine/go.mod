// SPDX-License-Identifier: BSD-3-Clause
module perdure/porcupine

go 1.19

require github.com/anishathalye/porcupine v1.3.1
