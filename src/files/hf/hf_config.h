#pragma once
// config.json of a Hugging Face model directory. The fields that say what a model is for are read
// and checked here; its shape is asked for by the family's own code (models/family.h); the whole is
// kept, so that it can be written back as it was plus what training changed (labels, problem type,
// architecture). Of a model of texts and images that is the part for texts.

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/dtype.h"
#include "src/base/json/json_reader.h"
#include "src/base/json/json_value.h"

namespace ferry {

class HfConfig {
 public:
  /** Reads and checks the file. Error(data): missing, not a JSON object, a field of the wrong kind
   * or out of range. */
  static HfConfig load(const std::filesystem::path& file);
  /** The same from text; `origin` names it in messages. */
  static HfConfig parse(std::string text, std::string origin);

  std::string model_type;                  // "bert"
  std::vector<std::string> architectures;  // {"BertForSequenceClassification"}, may be empty
  std::vector<std::string> id2label;       // LABEL_0, ... of a classifier without names; else empty
  std::string
      problem_type;  // "" or single_label_classification, multi_label_classification, regression

  /** "nf4", "fp4" or "int8" where bitsandbytes has quantised the weights, "gguf" where they are a
   * GGUF file's, "mxfp4" where they are as gpt-oss has them; else empty. They are read with their
   * values, and written without quantisation: json() does not say it. */
  std::string quantised;
  /** The storages of matrices in the files, by names of tensors (models/core/storage.h). */
  std::map<std::string, std::string> storages;
  /** Parts of the names of modules that are not quantised, of "mxfp4", which names no others. */
  std::vector<std::string> modules_with_values;
  /** The scales of nf4 are quantised, too. */
  bool has_nested_scales = false;

  /** The fields of a family, as they were read. */
  const JsonReader& fields() const { return fields_; }

  /** id2label, label2id, num_labels as transformers writes them. A single label of a regression is
   * "LABEL_0". */
  void set_labels(const std::vector<std::string>& names);
  void set_problem_type(std::string_view type);
  void set_architecture(std::string_view name);
  /** The type of the weights, under both keys that releases of transformers read. */
  void set_dtype(DType dtype);

  /** The whole file in its own order, with the changes. */
  const nlohmann::ordered_json& json() const { return *json_; }
  /** The same with what it says of quantisation, for another process that reads the same files. */
  nlohmann::ordered_json with_quantisation() const;
  /** Takes over what another one says of quantisation: a run's directory does not say it. */
  void take_quantisation(const HfConfig& of);
  /** Any other key, kept for write_json_file. */
  void set(std::string_view key, nlohmann::ordered_json value);
  const std::string& origin() const { return fields_.file(); }

 private:
  struct TextPart {};

  explicit HfConfig(JsonReader fields);
  /** The part for texts. */
  HfConfig(JsonReader fields, TextPart);

  void read_labels();

  JsonReader fields_;
  JsonValue json_, quantisation_;
};

}  // namespace ferry
