// Stops the streams where the program ends, before libraries destroy what kernels of the CPU need.
// A handler of atexit would not do: what kernels make at their first use is destroyed before it
// runs.
#include <dlfcn.h>

#include "tests/emulated_gpu/streams.h"

namespace {

using Main = int (*)(int, char**, char**);
Main the_main = nullptr;

int main_and_end(int count, char** words, char** environment) {
  const int code = the_main(count, words, environment);
  emulated_gpu::stop_streams();
  return code;
}

}  // namespace

extern "C" int __libc_start_main(Main program, int count, char** words, void (*begin)(),
                                 void (*end)(), void (*end_of_loader)(), void* stack) {
  the_main = program;
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  const auto start = reinterpret_cast<Start>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  return start(main_and_end, count, words, begin, end, end_of_loader, stack);
}
