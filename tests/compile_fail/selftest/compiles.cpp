// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: anything
// REFUSED: it compiles
int main() {}
