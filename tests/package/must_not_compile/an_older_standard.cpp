// expect: holdfast needs C\+\+20
#ifdef MISTAKE
#undef __cplusplus
#define __cplusplus 201703L
#endif
#include <holdfast/holdfast.hpp>

int main() {}
