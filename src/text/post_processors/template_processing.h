#pragma once
// TemplateProcessing puts special tokens around one or two texts as two templates say;
// BertProcessing is the template [CLS] A [SEP] B [SEP].

#include <memory>
#include <string>
#include <utility>

#include "src/text/registry.h"

namespace ferry::text {

class TemplateProcessing : public PostProcessor {
 public:
  TemplateProcessing(Template single, Template pair)
      : single_(std::move(single)), pair_(std::move(pair)) {}

  static std::unique_ptr<PostProcessor> read(const JsonReader& section,
                                             const StageContext& context);
  static std::unique_ptr<PostProcessor> read_bert(const JsonReader& section,
                                                  const StageContext& context);
  static std::unique_ptr<PostProcessor> bert(int32_t cls, int32_t sep);

  const Template* single() const override { return &single_; }
  const Template* pair() const override { return &pair_; }

 private:
  Template single_, pair_;
};

/** The id of ["[SEP]", 102] under a key. */
int32_t read_token_pair(const JsonReader& section, const std::string& key, size_t vocab_size);

}  // namespace ferry::text
