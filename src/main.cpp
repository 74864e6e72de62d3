// Exceptions become exit codes here, and nothing else happens.
#include <cstdio>

int main() {
  std::puts("echelon");
  return 0;
}
