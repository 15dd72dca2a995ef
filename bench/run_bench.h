// What every benchmark's main() does.
#pragma once

#include <exception>
#include <iostream>
#include <map>
#include <string>
#include <utility>

#include "bench/arguments.h"

namespace tupelo::bench {

// run(arguments), whose defaults list every option there is. The exit code: 2 after an error, which
// is told in a line that begins with the benchmark's name.
template <typename Run>
int run_bench(const std::string& name, int argc, char** argv,
              std::map<std::string, std::string> defaults, Run run) {
  try {
    run(Arguments(argc, argv, std::move(defaults)));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << "\n";
    return 2;
  }
}

}  // namespace tupelo::bench
