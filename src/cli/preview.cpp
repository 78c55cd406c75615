// ferry preview: the texts of a training as the model will see them, without LibTorch.

#include "src/service/preview.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/print.h"
#include "src/base/utf8.h"
#include "src/cli/inputs.h"
#include "src/cli/settings.h"
#include "src/term/table.h"

namespace ferry::cli {

namespace {

using nlohmann::ordered_json;
using service::Preview;
using service::PreviewBatch;
using service::PreviewSample;
using service::PreviewToken;

constexpr int64_t kShown = 5, kShown_json = 50;

int64_t n_samples_of(const config::CommandLine& command) {
  if (command.words.empty()) return command.wants_json ? kShown_json : kShown;
  const std::string& word = command.words.front();
  int64_t n = 0;
  const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), n);
  constexpr int64_t kMost = 10000;
  if (command.words.size() > 1 || code != std::errc() || end != word.data() + word.size() ||
      n < 1 || n > kMost)
    throw Error(Fault::usage, "cli.argument",
                fmt::format("'{}' is no number of texts from 1 to {}", word, kMost),
                "usage: ferry preview --model DIR --dataset DATA [N]");
  return n;
}

/** Coloured and underlined, or between braces where the terminal does neither. */
std::string marked(const std::string& text, const term::Terminal& terminal) {
  return terminal.has_color ? "\x1b[4;32m" + text + "\x1b[0m" : "{" + text + "}";
}

std::string shown(std::string_view text, const term::Terminal& terminal) {
  return term::printable(escaped(text), terminal);
}

/** Tokens one after another; "##ing" and the like as the vocabulary has them. */
std::string line_of(const std::vector<PreviewToken>& tokens, const term::Terminal& terminal) {
  std::string line;
  for (const PreviewToken& token : tokens) {
    std::string piece = shown(token.piece, terminal);
    if (token.is_trained) piece = marked(piece, terminal);
    if (!token.target.empty() && token.target != token.piece)
      piece += term::styled("=" + shown(token.target, terminal), term::Style::dim, terminal);
    line += (line.empty() ? "" : " ") + piece;
  }
  return line;
}

std::string n_tokens(int64_t n) {
  return fmt::format("{} token{}", n, n == 1 ? "" : "s");
}

void print_sample(const PreviewSample& sample, const term::Terminal& terminal) {
  constexpr int kFieldWidth = 400;
  std::string head = fmt::format("text {}", sample.example + 1);
  if (!sample.part_name.empty())
    head += ", " + sample.part_name;
  else if (sample.n_parts > 1)
    head += fmt::format(", part {} of {}", sample.part + 1, sample.n_parts);
  fmt::print("{}{}{}\n", term::styled(head, term::Style::bold, terminal),
             sample.is_truncated ? ", cut to max_length" : "",
             sample.is_held_out ? ", held out for evaluation" : "");
  for (const auto& [name, value] : sample.fields)
    fmt::print("  {}: {}\n", name, term::fitted(escaped(value), kFieldWidth, terminal));
  const std::string trained =
      sample.has_answer ? marked(shown(sample.answer, terminal), terminal) + " is learnt"
      : sample.n_trained() > 0
          ? fmt::format("{} of them trained on", sample.n_trained())
          : term::styled("none of them trained on", term::Style::yellow, terminal);
  fmt::print("  {}, {}:\n  {}\n\n", n_tokens(std::ssize(sample.tokens)), trained,
             line_of(sample.tokens, terminal));
}

std::string share(int64_t n, int64_t of) {
  return fmt::format("{} ({:.1f} %)", n,
                     of > 0 ? 100.0 * static_cast<double>(n) / static_cast<double>(of) : 0.0);
}

void print_numbers(const Preview& preview, const term::Terminal& terminal) {
  const service::PreviewNumbers& numbers = preview.numbers;
  const auto& bins = numbers.lengths;
  const int64_t most = bins.counts.empty() ? 0 : *std::ranges::max_element(bins.counts);
  term::Table table({{"tokens"}, {"texts", term::Align::right}, {""}});
  for (size_t i = 0; i < bins.counts.size(); ++i) {
    if (bins.counts[i] == 0) continue;
    const int64_t begin = static_cast<int64_t>(i) * bins.width;
    table.add_row({bins.width == 1 ? std::to_string(begin + 1)
                                   : fmt::format("{} to {}", begin + 1, begin + bins.width),
                   std::to_string(bins.counts[i]),
                   term::bar(static_cast<double>(bins.counts[i]), static_cast<double>(most),
                             term::bar_width(terminal), terminal)});
  }
  fmt::print("{}\n", table.text(terminal));
  const int64_t n = numbers.n_sequences;
  fmt::print("{}: {} sequences, {:.1f} tokens on average, at most {} (max_length {})\n",
             preview.is_of_all ? "all that is trained on" : "the texts above", n,
             n > 0 ? static_cast<double>(numbers.n_tokens) / static_cast<double>(n) : 0.0,
             numbers.n_longest, preview.max_length);
  fmt::print("cut to max_length: {}\n", share(numbers.n_truncated, n));
  if (numbers.n_untrained)
    fmt::print("without anything to learn: {}\n", share(*numbers.n_untrained, n));
}

void print_findings(const std::vector<PreflightFinding>& findings, const term::Terminal& terminal) {
  if (findings.empty()) return;
  fmt::print("\nfound before the first step:\n");
  for (const PreflightFinding& finding : findings) {
    const bool is_error = finding.gravity == Gravity::error;
    fmt::print("  {}: {}: {}\n",
               term::styled(is_error ? "fault" : "warning",
                            is_error ? term::Style::red : term::Style::yellow, terminal),
               shown(finding.text, terminal), shown(finding.hint, terminal));
  }
}

void print_batch(const PreviewBatch& batch, const term::Terminal& terminal) {
  constexpr size_t kRows = 8;
  constexpr int kTextWidth = 60;
  fmt::print("\nthe first batch: {} samples, {} tokens{}\n", batch.n_samples, batch.n_tokens,
             batch.n_trained_tokens > 0
                 ? fmt::format(", {} of them trained on", batch.n_trained_tokens)
                 : "");
  term::Table table(
      {{"text", term::Align::right}, {"tokens", term::Align::right}, {"learnt"}, {"begins"}});
  for (size_t i = 0; i < std::min(kRows, batch.rows.size()); ++i) {
    const PreviewSample& sequence = batch.rows[i].sequence;
    table.add_row(
        {std::to_string(sequence.example + 1), std::to_string(sequence.tokens.size()),
         sequence.has_answer ? shown(sequence.answer, terminal) : n_tokens(sequence.n_trained()),
         term::fitted(escaped(sequence.text), kTextWidth, terminal)});
  }
  fmt::print("{}", table.text(terminal));
  if (batch.rows.size() > kRows || batch.is_shortened) fmt::print("and more\n");
}

ordered_json json_of(const PreviewSample& sample) {
  ordered_json fields = ordered_json::object(), tokens = ordered_json::array();
  for (const auto& [name, value] : sample.fields)
    fields[name] = value;
  for (const PreviewToken& token : sample.tokens) {
    ordered_json json = {{"id", token.id}, {"token", token.piece}, {"trained", token.is_trained}};
    if (token.text >= 0) {
      json["text"] = token.text;
      json["begin"] = token.bytes.begin;
      json["end"] = token.bytes.end;
    }
    if (!token.target.empty()) json["target"] = token.target;
    tokens.push_back(std::move(json));
  }
  return {{"example", sample.example},
          {"part", sample.part},
          {"n_parts", sample.n_parts},
          {"fields", fields},
          {"n_tokens", sample.tokens.size()},
          {"n_trained", sample.n_trained()},
          {"answer", sample.has_answer ? ordered_json(sample.answer) : nullptr},
          {"is_truncated", sample.is_truncated},
          {"is_held_out", sample.is_held_out},
          {"tokens", tokens}};
}

ordered_json json_of(const PreviewBatch& batch) {
  ordered_json rows = ordered_json::array();
  for (const service::PreviewBatchRow& row : batch.rows) {
    ordered_json ids = ordered_json::array();
    for (const PreviewToken& token : row.sequence.tokens)
      ids.push_back(token.id);
    rows.push_back(
        {{"example", row.sequence.example},
         {"micro_batch", row.micro_batch},
         {"n_trained", row.sequence.n_trained()},
         {"answer", row.sequence.has_answer ? ordered_json(row.sequence.answer) : nullptr},
         {"ids", ids}});
  }
  return {{"n_samples", batch.n_samples},
          {"n_tokens", batch.n_tokens},
          {"n_trained_tokens", batch.n_trained_tokens},
          {"rows", rows}};
}

void print_json(const Preview& preview) {
  const service::PreviewNumbers& numbers = preview.numbers;
  ordered_json samples = ordered_json::array();
  for (const PreviewSample& sample : preview.samples)
    samples.push_back(json_of(sample));
  ordered_json findings = ordered_json::array();
  for (const PreflightFinding& finding : preview.findings)
    findings.push_back({{"check", finding.check},
                        {"is_error", finding.gravity == Gravity::error},
                        {"text", finding.text},
                        {"hint", finding.hint}});
  const ordered_json json = {
      {"task", preview.task},
      {"tokenizer", preview.tokenizer},
      {"max_length", preview.max_length},
      {"labels", preview.labels},
      {"n_sequences", numbers.n_sequences},
      {"n_tokens", numbers.n_tokens},
      {"longest", numbers.n_longest},
      {"n_truncated", numbers.n_truncated},
      {"n_without_target",
       numbers.n_untrained ? ordered_json(*numbers.n_untrained) : ordered_json(nullptr)},
      {"lengths", {{"width", numbers.lengths.width}, {"counts", numbers.lengths.counts}}},
      {"findings", findings},
      {"first_batch", preview.first_batch ? json_of(*preview.first_batch) : nullptr},
      {"samples", samples}};
  ferry::print(json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace

int run_preview(Arguments arguments) {
  const auto command = read_settings("preview", arguments);
  if (!command) return 0;
  provide_inputs(command->config, service::ModelNeed::tokens);
  const Preview preview =
      service::preview(command->config, {.n_samples = n_samples_of(*command), .tell = log_line});
  if (command->wants_json) {
    print_json(preview);
    return 0;
  }
  const term::Terminal terminal = term::detect_terminal(1);
  const bool is_marked =
      std::ranges::any_of(preview.samples, [](const auto& s) { return s.is_trained_on(); });
  if (is_marked)
    fmt::print("{} is trained on.\n\n", terminal.has_color
                                            ? marked("Coloured and underlined", terminal)
                                            : "What stands in {braces}");
  for (const PreviewSample& sample : preview.samples)
    print_sample(sample, terminal);
  print_numbers(preview, terminal);
  print_findings(preview.findings, terminal);
  if (preview.first_batch) print_batch(*preview.first_batch, terminal);
  return 0;
}

}  // namespace ferry::cli
