// SPDX-License-Identifier: BSD-3-Clause
// REFUSED: no expectation
int main() {
#ifndef PERDURE_CONTROL
  return undeclared_name;
#endif
}
