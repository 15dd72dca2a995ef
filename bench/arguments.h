// Command-line options of the benchmarks: --name value, and --json.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>

namespace tupelo::bench {

class Arguments {
 public:
  // `defaults` lists every option that there is. Throws std::invalid_argument for any other.
  Arguments(int argc, char** argv, std::map<std::string, std::string> defaults)
      : values_(std::move(defaults)) {
    for (int i = 1; i < argc; ++i) {
      const std::string name = argv[i];
      if (name == "--json") {
        json_ = true;
        continue;
      }
      const auto value = values_.find(name);
      if (value == values_.end() || i + 1 == argc) {
        throw std::invalid_argument((value == values_.end() ? "unknown option " : "no value for ") +
                                    name + "; the options are " + list() + " --json");
      }
      value->second = argv[++i];
    }
  }

  bool json() const { return json_; }
  const std::string& text(const std::string& name) const { return values_.at(name); }
  std::int64_t number(const std::string& name) const { return std::stoll(values_.at(name)); }

  // "--layers 8 --rounds 7": what was measured.
  std::string list() const {
    std::string all;
    for (const auto& [name, value] : values_) {
      all += (all.empty() ? "" : " ") + name + " " + value;
    }
    return all;
  }

 private:
  std::map<std::string, std::string> values_;
  bool json_ = false;
};

}  // namespace tupelo::bench
