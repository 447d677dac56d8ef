// SPDX-License-Identifier: BSD-3-Clause
// EXPECT: a message that no compiler prints
// REFUSED: wrong message
int main() {
#ifndef PERDURE_CONTROL
  return undeclared_name;
#endif
}
