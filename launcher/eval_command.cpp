#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "launcher/agreement.h"
#include "launcher/attention_kernels.h"
#include "launcher/commands.h"
#include "launcher/console.h"
#include "launcher/evaluation.h"
#include "launcher/length_evaluation.h"
#include "launcher/nearest_name.h"
#include "launcher/probe_report.h"
#include "launcher/saved_model.h"
#include "launcher/session.h"
#include "launcher/value_text.h"

namespace tupelo {
namespace {

using Takes = VerbOption::Takes;

struct EvalSettings {
  std::string run, device, probe, weights;
  std::vector<std::string> corpora;
  std::int64_t step = 0, rows = 0, threads = 0;
  LengthSettings by_length;
};

EvalSettings settings_from(const CommandLine& line) {
  const auto integer = [&](const std::string& name, const std::string& fallback, std::int64_t least,
                           std::int64_t most) {
    return reading_option(name,
                          [&] { return parse_integer(line.value(name, fallback), least, most); });
  };
  EvalSettings settings;
  settings.run = line.required("run");
  settings.corpora = line.values("corpus");
  settings.device = reading_option("device", [&] {
    return one_of(line.value("device", "auto"), {"auto", "cpu", "cuda"});
  });
  settings.probe = line.value("probe");
  settings.weights = reading_option(
      "weights", [&] { return one_of(line.value("weights", "last"), weights_names()); });
  settings.step = integer("step", "0", 0, INT64_MAX);
  settings.rows = integer("rows", std::to_string(INT64_C(1) << 40), 1, INT64_MAX);
  settings.threads = integer("threads", "0", 0, 4096);
  settings.by_length = length_settings(line);
  return settings;
}

ShardedCorpus open_held_out(const std::string& folder, const SavedModel& saved) {
  ShardedCorpus corpus(folder, Split::kHeldOut);
  if (corpus.info().tokenizer_fingerprint != saved.state.tokenizer_fingerprint) {
    throw CorpusError("corpus " + folder + " was made with another vocabulary (" +
                      corpus.info().tokenizer_fingerprint.substr(0, 12) + "...) than the model (" +
                      saved.state.tokenizer_fingerprint.substr(0, 12) + "...)");
  }
  if (saved.config.data.sentence_pairs && corpus.info().sentence_rules == 0) {
    throw CorpusError(
        "corpus " + folder +
        " does not say where sentences begin, and the model was trained to tell their "
        "order (objective.sop-weight); prepare it with --sentences");
  }
  for (std::size_t shard = 0; shard < corpus.shards().size(); ++shard) corpus.verify_shard(shard);
  return corpus;
}

// The corpora of the command line, else those of the run.
std::vector<std::string> chosen_corpora(const EvalSettings& settings, const SavedModel& saved) {
  const std::vector<std::string>& folders =
      settings.corpora.empty() ? saved.state.corpora : settings.corpora;
  if (folders.size() > 1 && (!settings.by_length.lengths.empty() || !settings.probe.empty())) {
    throw std::invalid_argument("--lengths and --probe look at one corpus, and this run has " +
                                std::to_string(folders.size()) + "; name one by --corpus");
  }
  return folders;
}

struct CorpusResult {
  std::string folder;
  Evaluation evaluation;
  double unigram_entropy = 0;
};

nlohmann::ordered_json evaluation_json(const Evaluation& result) {
  nlohmann::ordered_json object = {{"loss", result.loss},
                                   {"perplexity", result.perplexity},
                                   {"masked_accuracy", result.masked_accuracy},
                                   {"masked_tokens", result.masked_tokens},
                                   {"rows", result.rows},
                                   {"tokens", result.tokens}};
  if (result.sentence_order) object.update(sentence_order_json(*result.sentence_order));
  return object;
}

void print_evaluation(const Evaluation& result) {
  std::cout << "held-out loss     " << significant(result.loss, 5) << " nats per masked token\n"
            << "perplexity        " << significant(result.perplexity, 5) << "\n"
            << "masked accuracy   " << significant(100 * result.masked_accuracy, 4) << "% of "
            << grouped(result.masked_tokens) << " tokens\n";
  if (result.sentence_order) {
    const SentenceOrderFigures& order = *result.sentence_order;
    std::cout << "sentence order    " << significant(order.loss, 4) << " nats per pair, "
              << significant(100 * order.accuracy, 4) << "% of " << grouped(order.pairs)
              << " pairs right; " << grouped(order.rows - order.pairs) << " rows are no pair\n";
  }
  std::cout << "evaluated         " << grouped(result.rows) << " rows, " << grouped(result.tokens)
            << " tokens\n";
}

void print(const SavedModel& saved, const std::vector<CorpusResult>& results, bool as_json) {
  std::vector<Evaluation> evaluations;
  for (const CorpusResult& result : results) evaluations.push_back(result.evaluation);
  const Evaluation all = combined(evaluations);
  if (as_json) {
    nlohmann::ordered_json object = {{"checkpoint", saved.folder}, {"step", saved.state.step}};
    object.update(evaluation_json(all));
    if (results.size() == 1) object["unigram_entropy"] = results.front().unigram_entropy;
    for (std::size_t i = 0; results.size() > 1 && i < results.size(); ++i) {
      nlohmann::ordered_json part = {{"corpus", results[i].folder}};
      part.update(evaluation_json(results[i].evaluation));
      part["unigram_entropy"] = results[i].unigram_entropy;
      object["corpora"].push_back(part);
    }
    std::cout << object.dump(1) << std::endl;
    return;
  }
  std::cout << "checkpoint        " << saved.folder << "\n";
  for (const CorpusResult& result : results) {
    if (results.size() > 1) std::cout << "\ncorpus            " << result.folder << "\n";
    print_evaluation(result.evaluation);
    std::cout << "unigram entropy   " << significant(result.unigram_entropy, 5)
              << " nats (the loss of the best guess without context)\n";
  }
  if (results.size() > 1) {
    std::cout << "\nall corpora\n";
    print_evaluation(all);
  }
  std::cout << std::flush;
}

void print(const SavedModel& saved, const LengthSettings& settings,
           const std::vector<LengthResult>& results, double entropy, bool as_json) {
  if (as_json) {
    nlohmann::ordered_json object = {{"checkpoint", saved.folder},
                                     {"step", saved.state.step},
                                     {"trained_length", saved.config.model.max_positions}};
    object.update(length_json(settings, results));
    object["unigram_entropy"] = entropy;
    std::cout << object.dump(1) << std::endl;
    return;
  }
  std::cout << "checkpoint        " << saved.folder << "\n"
            << "unigram entropy   " << significant(entropy, 5) << " nats\n"
            << length_table(results) << std::flush;
}

// Of one micro-batch of rows, or fewer.
void write_probe(SavedModel& saved, const ShardedCorpus& corpus, const EvalSettings& settings,
                 torch::Device device) {
  DataOptions data = saved.config.data;
  data.micro_batch = std::min(data.micro_batch, settings.rows);
  ProbeReport report;
  report.checkpoint = saved.folder;
  report.step = saved.state.step;
  report.probe = probe_held_out(*saved.model, corpus, data, device);
  report.gradient_norms = held_out_gradient_norms(*saved.model, corpus, data, device);
  write_probe_report(settings.probe, report);
}

ExitCode eval_in(Session& session, const CommandLine& line) {
  Console console(/*silent=*/!session.is_first());
  EvalSettings settings;
  Communicator& control = session.control();
  together(control, [&] { settings = settings_from(line); });
  if (!settings.probe.empty()) {
    on_rank_zero(control, [&] { check_probe_folder(settings.probe); });
  }
  session.configure(settings.device, static_cast<int>(settings.threads), 600);
  take_any_shape();
  const std::vector<std::int64_t>& lengths = settings.by_length.lengths;
  SavedModel saved;
  std::shared_ptr<RobertaForMaskedLm> extended;
  std::vector<std::string> folders;
  std::vector<ShardedCorpus> corpora;
  together(control, [&] {
    saved = load_saved_model(settings.run, settings.step, settings.weights,
                             [&](const std::string& sentence) { console.notice(sentence); });
    folders = chosen_corpora(settings, saved);
    for (const std::string& folder : folders) corpora.push_back(open_held_out(folder, saved));
    saved.model->to(session.device());
    if (!lengths.empty()) extended = extended_model(saved, settings.by_length, session.device());
  });
  const bool as_json = line.has("json");
  if (!lengths.empty()) {
    const auto results = evaluate_lengths(saved, *extended, corpora.front(), lengths, settings.rows,
                                          session.device(), session.data());
    if (session.is_first()) {
      print(saved, settings.by_length, results, unigram_entropy(corpora.front()), as_json);
    }
  } else {
    std::vector<CorpusResult> results;
    for (std::size_t i = 0; i < corpora.size(); ++i) {
      results.push_back({folders[i], evaluate(*saved.model, corpora[i], saved.config.data,
                                              settings.rows, session.device(), session.data())});
      if (session.is_first()) results.back().unigram_entropy = unigram_entropy(corpora[i]);
    }
    if (session.is_first()) print(saved, results, as_json);
    for (const CorpusResult& result : results) {
      if (std::isfinite(result.evaluation.loss)) continue;
      throw AgreedError(ExitCode::kNumerics,
                        "the held-out loss on " + result.folder + " is not finite");
    }
  }
  if (!settings.probe.empty()) {
    on_rank_zero(control, [&] { write_probe(saved, corpora.front(), settings, session.device()); });
    if (!as_json) console.line("attention         " + settings.probe + "/index.html");
  }
  return ExitCode::kDone;
}

ExitCode run_eval(const Verb& verb, const std::vector<std::string>& words) {
  return in_session(verb, words, eval_in);
}

}  // namespace

Command eval_command() {
  Verb verb;
  verb.name = "eval";
  verb.usage =
      "[mpirun -np N] tupelo eval --run RUN [--corpus CORPUS] [--lengths T,T,... [--extend-policy "
      "NAME]] [--probe DIR] [--json]";
  verb.summary =
      "Measures a checkpoint on held-out documents. Masks are fixed by the corpus alone, so "
      "figures of "
      "different runs compare.";
  verb.options = {
      {"run", Takes::kOneValue, "RUN", "folder of the run"},
      {"corpus", Takes::kManyValues, "CORPUS...",
       "corpora with the same vocabulary (those of the run)"},
      {"step", Takes::kOneValue, "STEP", "checkpoint of this step (newest that verifies)"},
      {"weights", Takes::kOneValue, "WHICH",
       "last, or ema: the average that train.ema-decay keeps (last)"},
      {"rows", Takes::kOneValue, "COUNT",
       "held-out rows of each corpus, at most; with --lengths those of the shortest, of which "
       "longer "
       "ones are fewer: the same text (all)"},
      {"probe", Takes::kOneValue, "DIR",
       "write what attention scores are made of, over a micro-batch of rows as long as in "
       "training, "
       "to DIR/probe.json and DIR/index.html"},
      {"device", Takes::kOneValue, "DEVICE", "auto, cpu or cuda (auto)"},
      {"threads", Takes::kOneValue, "N", "computing threads (all cores)"},
      {"json", Takes::kNothing, "", "print JSON"}};
  for (const VerbOption& option : length_options()) verb.options.push_back(option);
  verb.options.push_back({"help", Takes::kNothing, "", "this text"});
  return {verb, run_eval};
}

}  // namespace tupelo
