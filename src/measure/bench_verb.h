#pragma once
// `ferry-trainer bench PART`: measures and prints one JSON object. `ferry doctor` and `ferry bench`
// start it and make tables of that.

#include <string>
#include <vector>

namespace ferry::measure {

/** PART is a part's name, `card`, `step`, `nccl` (src/measure/ranks/exchange_verb.h) or `all`;
 * `--json` is allowed and says nothing new;
 * `--seconds S` bounds the measuring, `--disk-bytes B` and `--host-bytes B` what it takes. */
int run_bench_verb(const std::vector<std::string>& words);

}  // namespace ferry::measure
