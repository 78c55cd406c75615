// Benchmark of the AdamW kernel against what this machine's memory can do. Every round runs each
// memory ceiling and each case once on the same threads; best and median rounds are reported, so
// a busy neighbour harms both alike.
//   simd_bench [--threads N] [--params N] [--rounds N] [--case GRAD/WEIGHTS[/STATES]]...
//              [--pages huge|normal] [--stagger BYTES] [--json]
// A case is such as bf16/bf16, f32/none or "bf16/split/8-bit states". GB/s count the bytes that
// AdamW has to move: gradients read, master, m and v read and written, weights written. FERRY_SIMD
// chooses the level.

#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "simd/kernels.h"
#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/process/threads.h"

namespace ferry {
namespace {

struct Options {
  int n_threads = n_usable_threads();
  int64_t n_params = 64 << 20;
  int n_rounds = 7;
  std::vector<std::string> only;  ///< cases; none: all
  bool huge_pages = true;
  int64_t stagger_bytes = 67'648;
  bool json = false;
};

/** One mapping, as the trainer's arenas are, for arrays that each begin `stagger_bytes` further
 * into the cache's sets than the one before: arrays a power of two apart would push each other out
 * of the caches. */
class Arrays {
 public:
  Arrays(int64_t n_arrays, int64_t bytes_each, int64_t stagger_bytes, bool huge_pages)
      : spacing_(round_up(bytes_each, 2 * kMiB) + round_up(stagger_bytes, 64)),
        n_bytes_(static_cast<size_t>(n_arrays * spacing_)) {
    data_ = mmap(nullptr, n_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED)
      throw Error(Fault::does_not_fit, "simd_bench.map", format_bytes(n_arrays * spacing_),
                  "give fewer --params");
    madvise(data_, n_bytes_, huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  }
  ~Arrays() { munmap(data_, n_bytes_); }
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;
  char* operator[](int64_t i) const { return static_cast<char*>(data_) + i * spacing_; }

 private:
  int64_t spacing_;
  size_t n_bytes_;
  void* data_;
};

/** Threads that run one job at a time, each on its own contiguous part of [0, n). */
class Team {
 public:
  Team(int n_threads, int64_t n) : n_(n), gate_(n_threads + 1) {
    for (int t = 0; t < n_threads; ++t)
      threads_.emplace_back([this, t, n_threads] { work(t, n_threads); });
  }
  ~Team() {
    job_ = nullptr;
    gate_.arrive_and_wait();
    for (std::thread& thread : threads_)
      thread.join();
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /** Seconds that all threads together took for job(begin, end). */
  double run(std::function<void(int64_t, int64_t)> job) {
    job_ = std::move(job);
    const auto start = std::chrono::steady_clock::now();
    gate_.arrive_and_wait();
    gate_.arrive_and_wait();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  void work(int t, int n_threads) {
    const int64_t n_tasks = n_ / simd::kTask_elements;
    const int64_t begin = n_tasks * t / n_threads * simd::kTask_elements;
    const int64_t end =
        t + 1 == n_threads ? n_ : n_tasks * (t + 1) / n_threads * simd::kTask_elements;
    for (;;) {
      gate_.arrive_and_wait();
      if (!job_) return;
      job_(begin, end);
      gate_.arrive_and_wait();
    }
  }

  int64_t n_;
  std::barrier<> gate_;
  std::function<void(int64_t, int64_t)> job_;
  std::vector<std::thread> threads_;
};

// Ceilings, per ISA: x = x * 0.999 over three arrays side by side, line by line, plain, with
// prefetching or with streaming stores; and the streaming triad a = b + 3 c. Begin and end are
// multiples of a line.

enum class Modify { plain, prefetched, streaming };

#define FERRY_CEILINGS(SUFFIX, TARGET, VECTOR, PREFIX, WIDTH)                                   \
  template <Modify kind>                                                                        \
  __attribute__((target(TARGET))) void modify_##SUFFIX(float* a, float* b, float* c,            \
                                                       int64_t begin, int64_t end) {            \
    const VECTOR k = PREFIX##_set1_ps(0.999f);                                                  \
    for (int64_t i = begin; i < end; i += 16) {                                                 \
      for (float* x : {a, b, c}) {                                                              \
        if constexpr (kind == Modify::prefetched) _mm_prefetch(x + i + 256, _MM_HINT_T0);       \
        for (int64_t j = i; j < i + 16; j += WIDTH) {                                           \
          const VECTOR y = PREFIX##_mul_ps(PREFIX##_load_ps(x + j), k);                         \
          if constexpr (kind == Modify::streaming) {                                            \
            PREFIX##_stream_ps(x + j, y);                                                       \
          } else {                                                                              \
            PREFIX##_store_ps(x + j, y);                                                        \
          }                                                                                     \
        }                                                                                       \
      }                                                                                         \
    }                                                                                           \
    _mm_sfence();                                                                               \
  }                                                                                             \
  __attribute__((target(TARGET))) void triad_##SUFFIX(float* a, const float* b, const float* c, \
                                                      int64_t begin, int64_t end) {             \
    const VECTOR k = PREFIX##_set1_ps(3.0f);                                                    \
    for (int64_t i = begin; i < end; i += WIDTH)                                                \
      PREFIX##_stream_ps(a + i, PREFIX##_add_ps(PREFIX##_load_ps(b + i),                        \
                                                PREFIX##_mul_ps(k, PREFIX##_load_ps(c + i))));  \
    _mm_sfence();                                                                               \
  }

FERRY_CEILINGS(sse, "sse2", __m128, _mm, 4)
FERRY_CEILINGS(avx2, "avx2", __m256, _mm256, 8)
FERRY_CEILINGS(avx512, "avx512f", __m512, _mm512, 16)

struct Ceilings {
  void (*modify[3])(float*, float*, float*, int64_t, int64_t);
  void (*triad)(float*, const float*, const float*, int64_t, int64_t);
};

#define FERRY_CEILINGS_OF(SUFFIX)                                         \
  Ceilings {                                                              \
    {modify_##SUFFIX<Modify::plain>, modify_##SUFFIX<Modify::prefetched>, \
     modify_##SUFFIX<Modify::streaming>},                                 \
        triad_##SUFFIX                                                    \
  }

Ceilings best_ceilings() {
  switch (simd::best_level()) {
    case simd::Level::avx512:
      return FERRY_CEILINGS_OF(avx512);
    case simd::Level::avx2:
      return FERRY_CEILINGS_OF(avx2);
    case simd::Level::scalar:
      break;
  }
  return FERRY_CEILINGS_OF(sse);
}

struct Case {
  std::string name;
  int64_t bytes_per_param;
  std::function<void(int64_t, int64_t)> run;
  bool is_ceiling = false;
  /** Before each run, not timed. */
  std::function<void(int64_t, int64_t)> prepare = {};
  std::vector<double> seconds = {};

  /** The time at this share of all rounds: 0 is the fastest, 0.5 the median. */
  double seconds_at(double share) const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size()))];
  }
  double gb_per_s(int64_t n, double share) const {
    return static_cast<double>(bytes_per_param * n) / seconds_at(share) * 1e-9;
  }
};

struct Type {
  const char* name;
  DType type;
};

Options parse(int argc, char** argv) {
  Options o;
  const auto bad = [](const std::string& what) {
    throw Error(Fault::usage, "simd_bench.options", what,
                "see the head of tests/simd/simd_bench.cpp");
  };
  for (int i = 1; i < argc; ++i) {
    const std::string key = argv[i];
    if (key == "--json") {
      o.json = true;
      continue;
    }
    if (i + 1 == argc) bad(key + " needs a value or is unknown");
    const std::string value = argv[++i];
    if (key == "--threads") {
      o.n_threads = std::max(1, std::atoi(value.c_str()));
    } else if (key == "--params") {
      o.n_params = std::max<int64_t>(1, std::atoll(value.c_str()) / simd::kTask_elements) *
                   simd::kTask_elements;
    } else if (key == "--rounds") {
      o.n_rounds = std::max(1, std::atoi(value.c_str()));
    } else if (key == "--case") {
      o.only.push_back(value);
    } else if (key == "--stagger") {
      o.stagger_bytes = std::max<int64_t>(0, std::atoll(value.c_str()));
    } else if (key == "--pages" && (value == "huge" || value == "normal")) {
      o.huge_pages = value == "huge";
    } else {
      bad(key + " " + value);
    }
  }
  return o;
}

int run(const Options& o) {
  const int64_t n = o.n_params;
  Team team(o.n_threads, n);
  const Arrays arrays(5, n * 4, o.stagger_bytes, o.huge_pages);
  auto* const p = reinterpret_cast<float*>(arrays[0]);
  auto* const pm = reinterpret_cast<float*>(arrays[1]);
  auto* const pv = reinterpret_cast<float*>(arrays[2]);
  char *const pg = arrays[3], *const pw = arrays[4];
  // First touch by the thread that uses the part; 0x3c3c... is a normal number in all three types.
  const auto fill_floats = [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      p[i] = 1.0f + static_cast<float>(i % 1024) * 1e-3f;
      pm[i] = 1e-3f;
      pv[i] = 1e-6f;
    }
    std::fill(pw + begin * 4, pw + end * 4, 0);
  };
  team.run([&](int64_t begin, int64_t end) {
    fill_floats(begin, end);
    std::fill(pg + begin * 4, pg + end * 4, 0x3c);
  });

  const Ceilings ceilings = best_ceilings();
  std::vector<Case> cases;
  const char* const modify_names[] = {"modify 3 arrays", "modify 3, prefetched",
                                      "modify 3, streaming"};
  for (int i = 0; i < 3; ++i)
    cases.push_back({modify_names[i], 24,
                     [=](int64_t b, int64_t e) { ceilings.modify[i](p, pm, pv, b, e); }, true});
  cases.push_back(
      {"triad, streaming", 12,
       [=](int64_t b, int64_t e) { ceilings.triad(reinterpret_cast<float*>(pw), pm, pv, b, e); },
       true});
  const simd::UpdateStep step =
      simd::make_step(simd::Optim::adamw, {.lr = 1e-4, .weight_decay = 0.01}, 10, 1.0f);
  using simd::Optim;
  for (const auto& [states_name, optim] : {std::pair{"", Optim::adamw},
                                           {"/bf16 states", Optim::adamw_bf16},
                                           {"/8-bit states", Optim::adamw_8bit}}) {
    // Exponents lie behind the largest values of v that any type of states has.
    auto* const exponents = reinterpret_cast<uint8_t*>(pv) + n;
    // The same numbers in the formats of the case: other cases leave bits there that would be
    // denormals or NaN in this one, and take other ways through its code.
    // Parts of narrow arrays overlap other threads' parts of wide ones: a pass of its own.
    const auto fill_states = [=](int64_t begin, int64_t end) {
      const auto fill = [&](auto* all, auto value) { std::fill(all + begin, all + end, value); };
      if (optim == Optim::adamw_bf16) {
        fill(reinterpret_cast<uint16_t*>(pm), uint16_t{0x3a83});
        fill(reinterpret_cast<uint16_t*>(pv), uint16_t{0x3586});
      } else if (optim == Optim::adamw_8bit) {
        // Codes of 2^-10 under the largest exponent of such a block.
        fill(reinterpret_cast<uint8_t*>(pm), uint8_t{0x78});
        fill(reinterpret_cast<uint8_t*>(pv), uint8_t{0xf0});
        for (uint8_t* of : {exponents, exponents + simd::state_blocks(n)})
          std::fill(of + simd::state_blocks(begin), of + simd::state_blocks(end), uint8_t{117});
      }
    };
    for (const Type g :
         {Type{"f32", DType::f32}, Type{"f16", DType::f16}, Type{"bf16", DType::bf16}}) {
      for (const Type w :
           {Type{"none", DType::f32}, Type{"f32", DType::f32}, Type{"f16", DType::f16},
            Type{"bf16", DType::bf16}, Type{"split", DType::bf16}}) {
        const std::string name = std::string(g.name) + "/" + w.name + states_name;
        if (!o.only.empty() && std::ranges::find(o.only, name) == o.only.end()) continue;
        const bool split = std::string_view(w.name) == "split";
        const bool has_weights = std::string_view(w.name) != "none";
        const auto g_bytes = static_cast<int64_t>(size_of(g.type));
        const int64_t w_bytes = has_weights ? static_cast<int64_t>(size_of(w.type)) : 0;
        const int64_t m_bytes = simd::state_value_bytes(simd::spec_of(optim).type, 1);
        // Read and written: m, v and the master, of which the split weights are half.
        const int64_t n_bytes = 4 * m_bytes + 8 + g_bytes + (split ? 0 : w_bytes);
        cases.push_back({name, n_bytes, [=](int64_t b, int64_t e) {
                           const simd::UpdateArgs all{
                               .master = p,
                               .states = {{pm, exponents}, {pv, exponents + simd::state_blocks(n)}},
                               .grad = pg,
                               .grad_type = g.type,
                               .weights = has_weights ? pw : nullptr,
                               .weights_type = w.type,
                               .n = n,
                               .step = step,
                               .optim = optim,
                               .split_master = split,
                               .noise_key = 1};
                           simd::update(simd::part_of(all, b, e - b));
                         }});
        cases.back().prepare = [=](int64_t begin, int64_t end) {
          fill_states(begin, end);
          if (split)  // 1 and a little
            std::fill(reinterpret_cast<uint16_t*>(pw) + begin,
                      reinterpret_cast<uint16_t*>(pw) + end, uint16_t{0x3f80});
        };
      }
    }
  }

  for (int round = 0; round < o.n_rounds; ++round)
    for (Case& c : cases) {
      if (c.prepare) team.run(fill_floats);
      if (c.prepare) team.run(c.prepare);
      c.seconds.push_back(team.run(c.run));
    }

  double ceiling_best = 0.0, ceiling_median = 0.0;
  for (const Case& c : cases) {
    if (!c.is_ceiling) continue;
    ceiling_best = std::max(ceiling_best, c.gb_per_s(n, 0.0));
    ceiling_median = std::max(ceiling_median, c.gb_per_s(n, 0.5));
  }

  nlohmann::json report = {{"level", simd::level_name()},
                           {"threads", o.n_threads},
                           {"params", n},
                           {"rounds", o.n_rounds},
                           {"huge_pages", o.huge_pages},
                           {"stagger_bytes", o.stagger_bytes},
                           {"ceiling_gb_per_s", ceiling_best},
                           {"ceiling_gb_per_s_median", ceiling_median}};
  FILE* talk = o.json ? stderr : stdout;
  std::fprintf(talk, "%s, %d threads, %lld parameters, %d rounds: best (median), %s pages\n",
               std::string(simd::level_name()).c_str(), o.n_threads, static_cast<long long>(n),
               o.n_rounds, o.huge_pages ? "huge" : "normal");
  for (const Case& c : cases) {
    const double best = c.gb_per_s(n, 0.0), median = c.gb_per_s(n, 0.5);
    const double params_per_s = static_cast<double>(n) / c.seconds_at(0.0);
    std::fprintf(talk, "%-24s %7.2f (%6.2f) GB/s", c.name.c_str(), best, median);
    if (!c.is_ceiling)
      std::fprintf(talk, " %3d B/param %8.1f Mparam/s  %5.1f (%5.1f) %% of the ceiling",
                   static_cast<int>(c.bytes_per_param), params_per_s * 1e-6,
                   best / ceiling_best * 100.0, median / ceiling_median * 100.0);
    std::fprintf(talk, "\n");
    report[c.is_ceiling ? "ceilings" : "adamw"].push_back(
        {{"name", c.name},
         {"bytes_per_param", c.bytes_per_param},
         {"seconds_best", c.seconds_at(0.0)},
         {"seconds_median", c.seconds_at(0.5)},
         {"gb_per_s", best},
         {"params_per_s", params_per_s},
         {"of_ceiling", best / ceiling_best},
         {"of_ceiling_median", median / ceiling_median}});
  }
  if (o.json) std::printf("%s\n", report.dump(2).c_str());
  return 0;
}

}  // namespace
}  // namespace ferry

int main(int argc, char** argv) {
  try {
    return ferry::run(ferry::parse(argc, argv));
  } catch (const ferry::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.exit_code();
  }
}
