// Command-line options of the benchmarks: --name value, and --json.
#pragma once

#include <cmath>
#include <cstdint>
#include <locale>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

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
  // A finite number of `least` or more. Throws std::invalid_argument.
  double decimal(const std::string& name, double least) const {
    const std::string& value = values_.at(name);
    std::istringstream stream(value);
    stream.imbue(std::locale::classic());
    double number = 0;
    const bool whole = stream >> number && stream.peek() == std::char_traits<char>::eof();
    if (whole && std::isfinite(number) && number >= least) return number;
    std::ostringstream sentence;
    sentence << name << " is '" << value << "'; valid is a number of " << least << " or more";
    throw std::invalid_argument(sentence.str());
  }
  // The parts between commas; none of nothing.
  std::vector<std::string> words(const std::string& name) const {
    std::vector<std::string> parts;
    std::istringstream stream(values_.at(name));
    for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
    return parts;
  }

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
