// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: undeclared_name
// REFUSED: broken control
int main() { return undeclared_name; }
