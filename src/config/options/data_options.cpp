// Options of what is read and what is written: the model, the data and the output.

#include "src/config/options/option_groups.h"

namespace ferry::config {
namespace {

constexpr std::string_view kModelGroup = "Model", kDataGroup = "Data", kOutputGroup = "Output";
constexpr std::string_view kCompletions =
    "chats are put into the model's template and their answers are trained on; of rows of prompt "
    "and completion the completion is, and they need chat_template = model for a template";
constexpr std::string_view kNoSamplingTask =
    "task = preference is the nearest: it learns from answers that were compared beforehand";
constexpr std::string_view kPairLoss = "preference_loss says which loss the pairs have";
constexpr std::string_view kRowsTask =
    "task = causal-lm is the nearest: a decoder learns it from rows of prompt and completion";

}  // namespace

std::vector<Option> data_options() {
  return {
      // ---- Model
      {.key = "model_name_or_path",
       .label = "Model",
       .type = Type::path,
       .group = kModelGroup,
       .level = Level::basic,
       .effect = Effect::fixes_bits,
       .value = "",
       .aliases =
           {{"model", "", true}, {"model_name"}, {"base_model"}, {"pretrained_model_name_or_path"}},
       .verbs = kRunning | kExport,
       .help = "Hugging Face model directory, a run directory (its final/ is taken), or the name "
               "of a model of the hub (ORGANISATION/NAME or ORGANISATION/NAME@REVISION), which is "
               "fetched where it is not on this machine."},
      {.key = "config_name",
       .label = "Shape of a new model",
       .type = Type::path,
       .group = kModelGroup,
       .effect = Effect::fixes_bits,
       .value = "",
       .aliases = {{"from_config", "", true}},
       .help =
           "Train a new model from scratch: its config.json, a directory that holds one, or the "
           "name of a known model whose shape is taken. No weights are read; they are drawn by "
           "seed as transformers draws them. Takes the place of model_name_or_path."},
      {.key = "tokenizer_name",
       .label = "Tokenizer of a new model",
       .type = Type::path,
       .group = kModelGroup,
       .effect = Effect::fixes_bits,
       .value = "",
       .aliases = {{"tokenizer", "", true}, {"tokenizer_name_or_path"}},
       .help = "Directory or name of the model whose tokenizer a model from scratch (config_name) "
               "takes; empty for the directory of its config.json."},
      {.key = "task",
       .label = "Task",
       .type = Type::choice,
       .group = kModelGroup,
       .level = Level::basic,
       .effect = Effect::fixes_bits,
       .value = "classification",
       .choices = {"classification", "mlm", "causal-lm", "token-classification",
                   "question-answering", "preference", "kto", "reward", "prompt-classification"},
       .choice_aliases = {{"text-classification", "classification"},
                          {"sequence-classification", "classification"},
                          {"masked-lm", "mlm"},
                          {"clm", "causal-lm"},
                          {"causal_lm", "causal-lm"},
                          {"text-generation", "causal-lm"},
                          {"language-modeling", "causal-lm"},
                          {"lm", "causal-lm"},
                          {"pretraining", "causal-lm"},
                          {"pt", "causal-lm"},
                          {"sft", "causal-lm", kCompletions},
                          {"instruction-tuning", "causal-lm", kCompletions},
                          {"fill-mask", "mlm"},
                          {"sentiment-analysis", "classification"},
                          {"pos", "token-classification"},
                          {"chunking", "token-classification"},
                          {"squad", "question-answering"},
                          {"chat", "causal-lm", kCompletions},
                          {"conversational", "causal-lm", kCompletions},
                          {"dpo", "preference"},
                          {"preferences", "preference"},
                          {"ipo", "preference", kPairLoss},
                          {"orpo", "preference", kPairLoss},
                          {"simpo", "preference", kPairLoss},
                          {"cpo", "preference", kPairLoss},
                          {"rm", "reward"},
                          {"prompt", "prompt-classification"},
                          {"openprompt", "prompt-classification"},
                          {"reward-model", "reward"},
                          {"ppo", "", kNoSamplingTask},
                          {"grpo", "", kNoSamplingTask},
                          {"summarization", "", kRowsTask},
                          {"translation", "", kRowsTask},
                          {"seq2seq", "", kRowsTask},
                          {"text2text-generation", "", kRowsTask},
                          {"ner", "token-classification"},
                          {"token_classification", "token-classification"},
                          {"qa", "question-answering"},
                          {"question_answering", "question-answering"}},
       .help =
           "What is trained: a classifier of texts; the masked language model of an encoder "
           "(mlm) or the language model of a decoder (causal-lm), both on texts without "
           "labels; a tagger of words, such as names (token-classification); a reader that "
           "finds answers in a text (question-answering); or, from pairs of a better and a "
           "worse answer to the same prompt, a language model that prefers the better ones "
           "(preference; kto from single good and bad ones) or a classifier that gives answers a "
           "number (reward); or a language model that tells labels by words at one place of a "
           "template (prompt-classification)."},
      {.key = "problem_type",
       .label = "Kind of labels",
       .type = Type::choice,
       .group = kModelGroup,
       .effect = Effect::fixes_bits,
       .value = "auto",
       .choices = {"auto", "single_label_classification", "multi_label_classification",
                   "regression"},
       .help = "How labels are read and which loss is used; auto decides by the data: one label a "
               "sample is "
               "single label."},

      // ---- Data
      {.key = "dataset",
       .label = "Training data",
       .type = Type::path,
       .group = kDataGroup,
       .level = Level::basic,
       .effect = Effect::fixes_bits,
       .value = "",
       .aliases = {{"train_file"}, {"dataset_name"}, {"train_dataset"}},
       .verbs = kReading,
       .help = "Folder with one sub-folder of text files per label, or a .tsv, .csv, .json, "
               ".jsonl, .parquet, .arrow, .conll, .txt or .md file; or several files of one form: "
               "a pattern "
               "('data/*.jsonl'), or names with commas "
               "between them; or a data set of the hub (ORGANISATION/NAME:CONFIG:SPLIT, the "
               "last two where it has several)."},
      {.key = "dataset_shares",
       .label = "Shares of several data sets",
       .type = Type::text,
       .group = kDataGroup,
       .effect = Effect::fixes_bits,
       .value = "",
       .aliases = {{"interleave_probs"}},
       .help =
           "A number for each name in dataset, with commas between them: 0.7,0.3. The data sets "
           "may then be of different forms. As many texts are taken, drawn by data_seed, as "
           "there are in these shares without taking one twice. Empty: all texts of all."},
      {.key = "eval_dataset",
       .label = "Evaluation data",
       .type = Type::path,
       .group = kDataGroup,
       .level = Level::basic,
       .value = "",
       .aliases = {{"validation_file"}, {"validation_dataset"}},
       .help =
           "Data for evaluation, of the same form as dataset; takes the place of eval_fraction."},
      {.key = "eval_fraction",
       .label = "Held-out share",
       .type = Type::number,
       .group = kDataGroup,
       .level = Level::basic,
       .effect = Effect::fixes_bits,
       .value = "0",
       .unit = "share of dataset",
       .special = {"0", "nothing"},
       .range = {0, 1, true},
       .aliases = {{"val_size"}, {"test_size"}, {"val_set_size"}, {"test_split_size"}},
       .help = "Share of dataset that is held out for evaluation, drawn by data_seed. More makes "
               "the measured "
               "accuracy surer and leaves less to learn from."},
      {.key = "dataset_format",
       .label = "Data format",
       .type = Type::choice,
       .group = kDataGroup,
       .effect = Effect::fixes_bits,
       .value = "auto",
       .choices = {"auto", "folder", "tsv", "csv", "jsonl", "parquet", "arrow", "conll", "txt"},
       .choice_aliases = {{"json", "jsonl"}, {"text", "txt"}, {"feather", "arrow"}, {"md", "txt"}},
       .verbs = kReading,
       .help = "Form of the data; auto goes by the directory or the file's ending."},
      {.key = "dataset_encoding",
       .label = "Text encoding",
       .type = Type::choice,
       .group = kDataGroup,
       .effect = Effect::fixes_bits,
       .value = "utf8",
       .choices = {"utf8", "utf8_or_latin1"},
       .verbs = kReading,
       .help = "Encoding of the data. utf8_or_latin1 reads a file that is not UTF-8 as Latin-1, "
               "which never fails and turns other encodings into wrong letters."},
      {.key = "dataset_delimiter",
       .label = "Column delimiter",
       .type = Type::text,
       .group = kDataGroup,
       .effect = Effect::fixes_bits,
       .value = "auto",
       .can_be_auto = true,
       .verbs = kReading,
       .help = "What is between the columns of a CSV or TSV file: comma, semicolon, tab, pipe, "
               "space, or a character; auto is tab for .tsv and for .csv the one that its lines "
               "are split by."},
      {.key = "dataset_quoting",
       .label = "Quotes in tables",
       .type = Type::choice,
       .group = kDataGroup,
       .effect = Effect::fixes_bits,
       .value = "auto",
       .choices = {"auto", "double", "none"},
       .verbs = kReading,
       .help = "Quotes in a CSV or TSV file. double: a column that begins with a double quote ends "
               "with one. none: a quote is a character like any other. auto is double, but takes "
               "columns between tabs as they stand where that fails."},
      {.key = "dataset_header",
       .label = "Header line",
       .type = Type::choice,
       .group = kDataGroup,
       .effect = Effect::fixes_bits,
       .value = "auto",
       .choices = {"auto", "yes", "no"},
       .verbs = kReading,
       .help = "Whether the first line of a CSV or TSV file names the columns; auto goes by names "
               "that are usual, and asks where it may be either."},
      {.key = "text_column",
       .label = "Text column",
       .type = Type::text,
       .group = kDataGroup,
       .level = Level::basic,
       .effect = Effect::fixes_bits,
       .value = "auto",
       .can_be_auto = true,
       .aliases = {{"text_column_name"}, {"dataset_text_field"}},
       .verbs = kReading,
       .help = "Column (or JSON key) that holds the text, by name or by number from 0. Several, as "
               "in instruction,input, are joined, each on a line of its own."},
      {.key = "text_pair_column",
       .label = "Second text column",
       .type = Type::text,
       .group = kDataGroup,
       .effect = Effect::fixes_bits,
       .value = "",
       .verbs = kReading,
       .help = "Column that holds a second text, for tasks on pairs; empty for none."},
      {.key = "pairs",
       .label = "Texts are pairs",
       .type = Type::boolean,
       .group = kDataGroup,
       .value = "false",
       .verbs = kPredict,
       .help = "The texts are pairs, for a model that was trained on pairs: words two by two, or "
               "lines of standard input with a tab between both texts."},
      {.key = "label_column",
       .label = "Label column",
       .type = Type::text,
       .group = kDataGroup,
       .level = Level::basic,
       .effect = Effect::fixes_bits,
       .value = "auto",
       .can_be_auto = true,
       .aliases = {{"label_column_name"}},
       .verbs = kReading & ~kGenerate,
       .help = "Column (or JSON key) that holds the label, by name or by number from 0. Several, "
               "as in a,b,c, hold 0 or 1 each: multi-label, and each is a label."},
      {.key = "label_names",
       .label = "Names of labels",
       .type = Type::text,
       .group = kDataGroup,
       .effect = Effect::fixes_bits,
       .value = "auto",
       .can_be_auto = true,
       .verbs = kReading & ~kGenerate,
       .help = "Names of labels or tags that are numbers in the data, with commas between them, in "
               "the order of the numbers from 0: O,B-PER,I-PER. auto takes those that stand in a "
               "Parquet or Arrow file, or in a dataset_info.json beside the data."},
      {.key = "long_prompts",
       .label = "Prompts that are too long",
       .type = Type::choice,
       .group = kDataGroup,
       .effect = Effect::fixes_bits,
       .value = "leave_out",
       .choices = {"leave_out", "cut"},
       .verbs = kReading & ~kGenerate,
       .help = "A prompt that fills max_length leaves no room for its completion (causal-lm). "
               "leave_out: such rows are counted and left out. cut: the prompt loses its end, so "
               "that both get their share, and a chat its oldest turns. Questions without room for "
               "their context are left out."},
      {.key = "chat_template",
       .label = "Chat template",
       .type = Type::text,
       .group = kDataGroup,
       .effect = Effect::fixes_bits,
       .value = "auto",
       .can_be_auto = true,
       .aliases = {{"template"}, {"chat_template_path"}},
       .verbs = kRunning & ~kGenerate,
       .help =
           "Template by which chats become texts (causal-lm): a .jinja file, or alpaca, chatml, "
           "llama3, vicuna or zephyr; model is the model's own. auto is model for rows of "
           "turns, and leaves rows of prompt and completion without a template. It is stored "
           "with the result."},
      {.key = "chat_template_kwargs",
       .label = "What the template is given",
       .type = Type::text,
       .group = kDataGroup,
       .effect = Effect::fixes_bits,
       .value = "",
       .verbs = kRunning & ~kGenerate,
       .help =
           "Variables for the chat template as an object of JSON: {\"enable_thinking\": false}. "
           "They take the place of those that it has already."},
      {.key = "chat_date",
       .label = "Day in chat templates",
       .type = Type::text,
       .group = kDataGroup,
       .effect = Effect::fixes_bits,
       .value = "auto",
       .can_be_auto = true,
       .verbs = kRunning & ~kGenerate,
       .help =
           "Day that a chat template which writes the date takes for today, as 2026-01-31; auto "
           "is the day on which the run begins, which a resumed run keeps."},
      {.key = "system_prompt",
       .label = "System prompt",
       .type = Type::text,
       .group = kDataGroup,
       .value = "",
       .aliases = {{"system"}},
       .verbs = kTalking,
       .help =
           "First turn of a chat, which says how the model is to answer; of ferry serve where a "
           "program gives none. A template without a "
           "place for it refuses it; empty is no such turn, and some templates then write one "
           "of their own."},
      {.key = "train_on_turns",
       .label = "Turns that are trained",
       .type = Type::choice,
       .group = kDataGroup,
       .effect = Effect::fixes_bits,
       .value = "each",
       .choices = {"each", "last", "all"},
       .choice_aliases = {{"assistant", "each"}, {"turn", "each"}},
       .aliases = {{"assistant_only_loss", "each"}, {"mask_history", "last"}},
       .verbs = kReading & ~kGenerate,
       .help =
           "Turns of a chat that have a loss: each answer, the last answer, or all of the text. "
           "With all the model learns to write questions, too."},
      {.key = "max_train_samples",
       .label = "Texts to train on",
       .type = Type::integer,
       .group = kDataGroup,
       .effect = Effect::fixes_bits,
       .value = "auto",
       .unit = "texts",
       .can_be_auto = true,
       .range = {1, kMaxInteger},
       .aliases = {{"max_samples"}},
       .help = "Trains on this many texts at most, the first of the data; auto is all. A quick "
               "trial."},
      {.key = "max_eval_samples",
       .label = "Texts to evaluate",
       .type = Type::integer,
       .group = kDataGroup,
       .value = "auto",
       .unit = "texts",
       .can_be_auto = true,
       .range = {1, kMaxInteger},
       .verbs = kReading & ~kGenerate,
       .help = "Evaluates this many texts at most, the first of the data; auto is all. Fewer take "
               "less time, and make the scores less sure."},
      {.key = "max_length",
       .label = "Longest text",
       .type = Type::integer,
       .group = kDataGroup,
       .level = Level::basic,
       .effect = Effect::fixes_bits,
       .value = "auto",
       .unit = "tokens",
       .can_be_auto = true,
       .range = {3, 1048576},
       .aliases = {{"max_seq_length"},
                   {"max_seq_len"},
                   {"cutoff_len"},
                   {"sequence_len"},
                   {"sequence_length"},
                   {"seq_len"},
                   {"block_size"},
                   {"model_max_length"}},
       .verbs = kRunning,
       .help = "Longer texts are cut to this many tokens; auto is the model's limit, at most 2048. "
               "Memory and "
               "time grow with it, faster than in proportion."},
      {.key = "packing",
       .label = "Pack short texts",
       .type = Type::boolean,
       .group = kDataGroup,
       .effect = Effect::fixes_bits,
       .value = "false",
       .aliases = {{"sample_packing"}, {"neat_packing"}},
       .help =
           "Put several short texts into a sample, up to max_length tokens (causal-lm, mlm). No "
           "text sees another. A step of as many samples then has more tokens, and of equal "
           "number."},
      {.key = "token_cache",
       .label = "Where tokens are kept",
       .type = Type::path,
       .group = kDataGroup,
       .value = "auto",
       .can_be_auto = true,
       .verbs = kReading & ~kGenerate,
       .help = "Directory where tokens are kept, so that texts are tokenized once and need not fit "
               "into memory. auto keeps those of 16 MiB of files or more, in "
               "$XDG_CACHE_HOME/ferry/tokens (~/.cache); off holds all tokens in memory."},
      {.key = "preflight",
       .label = "Look for faults first",
       .type = Type::boolean,
       .group = kDataGroup,
       .value = "true",
       .help = "Looks for faults that no error shows, before the first step: answers whose end is "
               "not learnt, labels that nothing has, texts in both parts of the data, a template "
               "that leaves turns out, and the like. Off saves the seconds that it takes."},
      {.key = "doc_stride",
       .label = "Overlap of windows",
       .type = Type::integer,
       .group = kDataGroup,
       .effect = Effect::fixes_bits,
       .value = "128",
       .unit = "tokens",
       .range = {0, 1048576},
       .verbs = kReading,
       .help = "Tokens that two windows of a long context share (question-answering); less than a "
               "window holds. More finds answers that a window's edge would cut, and makes more "
               "windows."},
      {.key = "max_answer_length",
       .label = "Longest answer",
       .type = Type::integer,
       .group = kDataGroup,
       .effect = Effect::changes_training,
       .value = "30",
       .unit = "tokens",
       .range = {1, 1048576},
       .verbs = kReading,
       .help = "Longest answer that is looked for (question-answering). Longer answers count as "
               "wrong where "
               "it is too small; more lets unlikely ones in."},

      // ---- Output
      {.key = "output_dir",
       .label = "Output directory",
       .type = Type::path,
       .group = kOutputGroup,
       .level = Level::basic,
       .value = "auto",
       .can_be_auto = true,
       .aliases = {{"output", "", true}, {"out_dir"}, {"outfile"}},
       .verbs = kTraining | kExport,
       .help = "Where the result is written; auto makes a new directory under runs/. In ferry "
               "export a directory, or a file whose name ends in .gguf."},
      {.key = "format",
       .label = "Format of the export",
       .type = Type::choice,
       .group = kOutputGroup,
       .value = "auto",
       .choices = {"auto", "hf", "gguf"},
       .choice_aliases = {{"huggingface", "hf"}, {"safetensors", "hf"}},
       .aliases = {{"export_format"}},
       .verbs = kExport,
       .help =
           "The form that ferry export writes: hf is a Hugging Face directory, gguf one file for "
           "llama.cpp and the programs that stand on it (Ollama, LM Studio). auto: gguf where "
           "--output ends in .gguf, else hf."},
      {.key = "gguf_type",
       .label = "Type of a GGUF file's matrices",
       .type = Type::choice,
       .group = kOutputGroup,
       .value = "auto",
       .choices = {"auto", "f32", "f16", "bf16", "q8_0"},
       .choice_aliases = {{"fp32", "f32"}, {"fp16", "f16"}, {"q8", "q8_0"}},
       .aliases = {{"outtype"}},
       .verbs = kExport,
       .help = "Type of the matrices in a GGUF file; vectors are f32. auto: a "
               "checkpoint keeps the type its run computed in, other models the type of their "
               "weights, or --dtype decides. "
               "f16 and bf16 take half of f32, q8_0 a bit more than a quarter; fewer bits answer "
               "faster and a little worse."},
      {.key = "compare_export",
       .label = "Compare answers after an export",
       .type = Type::boolean,
       .group = kOutputGroup,
       .value = "true",
       .verbs = kExport,
       .help =
           "Asks a language model that was written and the one it was made from for the same "
           "tokens, up to 200, and refuses it where they answer otherwise. It takes the time and "
           "memory to run both, one after the other; off leaves it at the bytes, which are "
           "always compared."},
      {.key = "resume_from_checkpoint",
       .label = "Run to resume",
       .type = Type::path,
       .group = kOutputGroup,
       .value = "",
       .aliases = {{"resume", "", true}, {"continue"}},
       .verbs = kTrain,
       .help =
           "Go on with a run: its directory (its last complete checkpoint is taken), or one of "
           "its checkpoint-N. Settings are the run's own; what is given beside it changes them. "
           "The bits are those of a run that never stopped."},
      {.key = "new_identity",
       .label = "Resume with other bits",
       .type = Type::boolean,
       .group = kOutputGroup,
       .value = "false",
       .verbs = kTrain,
       .help = "Resume although what fixes the run's bits has changed (batch sizes, dtype, seed, "
               "data, device, build): the result is then not that of the unchanged run."},
      {.key = "save_strategy",
       .label = "When to save",
       .type = Type::choice,
       .group = kOutputGroup,
       .value = "steps",
       .choices = {"steps", "epoch", "no"},
       .help =
           "When a checkpoint is written: every save_steps, at the end of each epoch, or never. "
           "Without one a run that is killed starts again."},
      {.key = "save_steps",
       .label = "Save every",
       .type = Type::interval,
       .group = kOutputGroup,
       .level = Level::basic,
       .value = "auto",
       .unit = "steps, share below 1, or time",
       .can_be_auto = true,
       .range = {0, kMaxInteger},
       .help = "Steps or time (30min) between two checkpoints; auto is every 30 minutes, at most 2 "
               "% of the time, and "
               "at the end."},
      {.key = "save_total_limit",
       .label = "Checkpoints kept",
       .type = Type::integer,
       .group = kOutputGroup,
       .value = "2",
       .unit = "checkpoints",
       .range = {1, 1000000},
       .help =
           "Checkpoints kept; older ones are removed once a newer one is complete. Each takes 12 "
           "bytes a parameter of disk, 8 with optim = adamw_bf16 or lion, 6 with adamw_8bit, 4 "
           "with sgd, 8 with momentum."},
      {.key = "save_weights",
       .label = "Self-contained checkpoints",
       .type = Type::boolean,
       .group = kOutputGroup,
       .value = "false",
       .verbs = kTrain,
       .help = "For runs with states on a drive (nvme_path): copy weights and states of each "
               "checkpoint into its directory, which then needs no drive and loads in "
               "transformers. Otherwise a checkpoint keeps the states where they are and is "
               "written at once; `ferry export` makes a model of it."},
  };
}

}  // namespace ferry::config
