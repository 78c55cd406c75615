#include "src/config/command_line/verb.h"

namespace ferry::config {

const std::vector<Verb>& verb_table() {
  static const std::vector<Verb> table = {
      {.name = "train",
       .mask = kTrain,
       .summary = "fine-tune a model on texts, or train one from scratch",
       .usage = "--model DIR --dataset DIR_OR_FILE [--preset NAME] [--config FILE] [key=value ...]",
       .details = "Fine-tunes a Hugging Face model and writes the result as a Hugging Face "
                  "directory. With "
                  "--from-config in place of --model it trains a new one from scratch. "
                  "What does not fit the GPU streams from host memory.",
       .required = {"model_name_or_path", "dataset"},
       .takes_dry_run = true,
       .examples =
           {"ferry train --preset minilm-classify --dataset news/",
            "ferry train --model bert-base/ --dataset train.tsv --eval-dataset dev.tsv lr=3e-5",
            "ferry train --from-config gpt2/config.json --task causal-lm --dataset book.txt",
            "ferry train --config run/config.toml --seed 7 --dry-run"}},
      {.name = "eval",
       .mask = kEval,
       .summary = "measure a trained model on labelled data",
       .usage = "--model DIR --dataset DIR_OR_FILE [key=value ...]",
       .details =
           "Prints the loss, and what the model's task is measured by: accuracy, F1 and the "
           "confusion matrix of a classifier, F1 of entities, exact match and F1 of answers, "
           "the perplexity of a language model, rewards where answers are compared.",
       .required = {"model_name_or_path", "dataset"},
       .examples = {"ferry eval --model runs/news --dataset test.tsv --json"}},
      {.name = "predict",
       .mask = kPredict,
       .summary = "label texts with a trained model",
       .usage = "--model DIR [TEXT ... | FILE] [--pairs] [key=value ...]",
       .details = "Labels the texts given as words, else those of --dataset, else standard input, "
                  "one text a line, as it is for the word -. One word that is a data file stands "
                  "for --dataset. Words after "
                  "-- are texts whatever they look like.",
       .required = {"model_name_or_path"},
       .takes_words = true,
       .examples = {"ferry predict --model runs/news \"Shares fell on Monday\"",
                    "ferry predict --model runs/news new.csv",
                    "ferry predict --model runs/nli --pairs \"A man sleeps\" \"He is awake\"",
                    "ferry predict --model runs/squad --pairs \"Who?\" \"Ann found it.\"",
                    "ferry predict --model runs/news --json < texts.txt"}},
      {.name = "generate",
       .mask = kGenerate,
       .summary = "go on with texts, by a trained language model",
       .usage = "--model DIR [PROMPT ...] [--max-new-tokens N] [--temperature T] [key=value ...]",
       .details = "Goes on with each prompt: those given as words, else those of --dataset (column "
                  "prompt or text), else standard input, all of which is one prompt. The text of a "
                  "single prompt is written as it comes. Without --temperature, --top-k or --top-p "
                  "the likeliest token is taken each time. Words after -- are prompts whatever "
                  "they look like.",
       .required = {"model_name_or_path"},
       .takes_words = true,
       .examples = {"ferry generate --model runs/story \"Once upon a time\"",
                    "ferry generate --model gpt2 --max-new-tokens 200 --top-p 0.9 < start.txt",
                    "ferry generate --model runs/story --dataset prompts.jsonl --json"}},
      {.name = "chat",
       .mask = kChat,
       .summary = "talk with a chat model",
       .usage =
           "RUN_OR_MODEL [--system TEXT] [--max-new-tokens N] [--temperature T] [key=value ...]",
       .details =
           "Each line of standard input is a turn, and the model's answer is written as it "
           "comes. Turns become text by the model's chat template. /reset begins anew, "
           "/system TEXT sets the system prompt, /retry asks for another answer, /undo "
           "takes the last turn back, /exit ends; a line of three quotes (\"\"\") begins and "
           "ends a turn of several lines. Ctrl-C stops an answer.",
       .required = {"model_name_or_path"},
       .examples = {"ferry chat runs/assistant",
                    "ferry chat HuggingFaceTB/SmolLM2-135M-Instruct --temperature 0.7 --top-p 0.9",
                    "ferry chat --model runs/assistant --system \"Answer in one word.\" --json < "
                    "turns.txt"}},
      {.name = "serve",
       .mask = kServe,
       .summary = "answer programs of this machine, as OpenAI's API does",
       .usage = "RUN_OR_MODEL [--port N] [--api-key KEY] [key=value ...]",
       .details =
           "Listens at http://127.0.0.1:8080/v1 (chat/completions, completions, models) until "
           "Ctrl-C. Answers are given one after another; --temperature and the like are for "
           "requests that do not say.",
       .required = {"model_name_or_path"},
       .examples =
           {"ferry serve runs/assistant",
            "ferry serve --model runs/assistant --port 9000 --temperature 0.7 --top-p 0.9"}},
      {.name = "export",
       .mask = kExport,
       .summary = "write a trained model as a Hugging Face directory or a GGUF file",
       .usage = "--model RUN --output DIR_OR_GGUF_FILE [key=value ...]",
       .details = "Copies what a run trained to a directory that transformers loads, or makes one "
                  "file for llama.cpp of it. An adapter is merged into its model. What was written "
                  "is read back and compared.",
       .required = {"model_name_or_path", "output_dir"},
       .examples = {"ferry export --model runs/news --output news-classifier",
                    "ferry export --model runs/chat --output chat.gguf --gguf-type q8_0"}},
      {.name = "plan",
       .mask = kPlan,
       .summary = "say beforehand what a run needs and whether it fits",
       .usage = "--model DIR [any option of train] [key=value ...]",
       .details = "Prints the bytes by kind and place that ferry train with the same options will "
                  "take. Needs "
                  "no GPU and reads no weights.",
       .required = {"model_name_or_path"},
       .takes_verbose = true,
       .examples = {"ferry plan --model bert-large/ --gpu-memory 11GiB --max-length 512"}},
      {.name = "preview",
       .mask = kTrain,
       .summary = "show the texts of a training as the model will see them",
       .usage = "--model DIR --dataset DIR_OR_FILE [N] [any option of train] [key=value ...]",
       .details =
           "Prints the first N texts (5) of ferry train with the same options: their tokens, "
           "those that are trained on marked, what is cut; then the lengths of all texts "
           "and the first batch. Nothing is written but kept tokens.",
       .required = {"model_name_or_path", "dataset"},
       .takes_words = true,
       .examples = {"ferry preview --preset minilm-classify --dataset news/",
                    "ferry preview --model gpt2 --task causal-lm --dataset chat.jsonl 20"}},
  };
  return table;
}

const Verb* find_verb(std::string_view name) {
  for (const Verb& verb : verb_table())
    if (verb.name == name) return &verb;
  return nullptr;
}

}  // namespace ferry::config
