#include <stdexcept>

#include "launcher/commands.h"
#include "launcher/console.h"
#include "launcher/curve_plot.h"
#include "launcher/run_folder.h"
#include "launcher/value_text.h"

namespace tupelo {
namespace {

using Takes = VerbOption::Takes;

// Where the picture goes; only another picture is replaced.
std::filesystem::path picture(const std::string& output) {
  if (!output.ends_with(".svg")) {
    throw std::invalid_argument("'" + output + "' does not end in .svg, and that is what is drawn");
  }
  const std::filesystem::path file = replaceable_file(output);
  if (std::filesystem::exists(file) && !read_file(file).starts_with("<svg")) {
    throw std::invalid_argument(output + " is no picture of this kind, so it is not replaced");
  }
  return file;
}

ExitCode run_plot(const Verb& verb, const std::vector<std::string>& words) {
  const CommandLine line(verb, words);
  const RunFolder folder(line.required("run"));
  const std::string output = line.value("output", (folder.root() / "curve.svg").string());
  const std::filesystem::path file = reading_option("output", [&] { return picture(output); });
  Curves curves = curves_from_metrics(read_file(folder.metrics()));
  if (line.has("reference-name") && !line.has("reference")) {
    throw std::invalid_argument("--reference-name belongs to --reference");
  }
  if (line.has("reference")) {
    try {
      curves.reference = parse_number(line.value("reference"), 0, 1e6);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(std::string("--reference: ") + error.what());
    }
    curves.reference_name = line.value("reference-name", "reference");
  }
  write_atomically(file, to_svg(curves));
  Console(/*silent=*/false).line(output);
  return ExitCode::kDone;
}

}  // namespace

Command plot_command() {
  Verb verb;
  verb.name = "plot";
  verb.usage = "tupelo plot --run RUN [--output FILE.svg]";
  verb.summary = "Draws the loss curve of a run as an SVG picture.";
  verb.options = {{"run", Takes::kOneValue, "RUN", "folder of the run"},
                  {"output", Takes::kOneValue, "FILE", "picture to write (RUN/curve.svg)"},
                  {"reference", Takes::kOneValue, "LOSS", "draw a horizontal line here"},
                  {"reference-name", Takes::kOneValue, "TEXT", "its name"},
                  {"help", Takes::kNothing, "", "this text"}};
  verb.positional = "run";
  return {verb, run_plot};
}

}  // namespace tupelo
