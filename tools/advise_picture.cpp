// SPDX-License-Identifier: BSD-3-Clause
#include "tools/advise_picture.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "perdure/base/descriptor.hpp"

namespace perdure::tool {
namespace {

// Reads the document from standard input. Bars are medians, whiskers reach from the slowest to the fastest round.
constexpr const char* script = R"python(
import json, sys
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
d = json.load(sys.stdin)
cells = [c for c in d["cells"] if "error" not in c]
modes = list(dict.fromkeys(c["mode"] for c in cells))
tallest = max((sum(c["mode"] == m for c in cells) for m in modes), default=1)
plt.rcParams.update({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True})
fig, axes = plt.subplots(1, max(1, len(modes)), figsize=(5.2 * max(1, len(modes)), 1.2 + 0.2 * tallest), squeeze=False)
for ax, mode in zip(axes.flat, modes):
    rows = [c for c in cells if c["mode"] == mode]
    rates = [c["per_second"] / 1e3 for c in rows]
    rounds = [[r / 1e3 for r in c["rounds"] if r] for c in rows]
    reach = [[max(0, v - min(r)) for v, r in zip(rates, rounds)], [max(0, max(r) - v) for v, r in zip(rates, rounds)]]
    taken = d["advice"].get(mode, {}).get("engine")
    colours = ["#228833" if c["engine"] == taken else "#4477aa" if c["durable"] else "#bbbbbb" for c in rows]
    ax.barh(range(len(rows)), rates, xerr=reach, color=colours, error_kw={"elinewidth": 0.8, "ecolor": "#333333"})
    ax.set_yticks(range(len(rows)), [c["engine"] for c in rows])
    ax.invert_yaxis()
    ax.set_xlabel("thousand transactions/s (green: advised; grey: not durable)")
    ax.set_title(f"{mode}, medium {d['replay']['medium']}")
    ax.grid(axis="x", linewidth=0.4, color="#dddddd")
fig.tight_layout()
fig.savefig(sys.argv[1], dpi=150)
)python";

/// python -c code argument, with `input` on its standard input; its exit status.
int run_python(const char* python, const char* code, const std::string& argument, std::string_view input) {
  int feed[2];
  if (base::open_pipe(feed) != 0) throw error(system_failure("python3", "pipe", errno));
  const pid_t child = ::fork();
  if (child < 0) throw error(system_failure("python3", "fork", errno));
  if (child == 0) {
    ::dup2(feed[0], STDIN_FILENO);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    ::execlp(python, python, "-c", code, argument.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::close(feed[0]);
  try {
    write_all(feed[1], input, "python3");
  } catch (const error&) {  // it ended early: its status says why
  }
  ::close(feed[1]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/// The system's own first, as the build does: that is where a package puts matplotlib. Null if none has it.
const char* find_python() {
  for (const char* python : {"/usr/bin/python3", "python3"})
    if (run_python(python, "import importlib.util, sys; sys.exit(importlib.util.find_spec('matplotlib') is None)", "", "") == 0)
      return python;
  return nullptr;
}

}  // namespace

void check_picture(const std::string& path) {
  if (!path.ends_with(".png") && !path.ends_with(".svg"))
    throw error(failure(Code::invalid, path, "a picture's name of neither kind", "one that ends in .png or .svg"));
  if (find_python() == nullptr)
    throw error(failure(Code::unsupported, path, "no python3 with matplotlib", "both, to draw a picture",
                        "install python3-matplotlib, or leave --picture out: --json has all that it would show"));
}

void draw_picture(const Json& document, const std::string& path) {
  const char* const python = find_python();
  if (python == nullptr || run_python(python, script, path, document.dump()) != 0)
    throw error(failure(Code::io, path, "python3 could not draw it (its words are above)", "a picture",
                        "leave --picture out: --json has all that it would show"));
}

}  // namespace perdure::tool
