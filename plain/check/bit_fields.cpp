// SPDX-License-Identifier: BSD-3-Clause
//
// A plug-in of GCC that refuses bit-fields in transactions: GCC 12 gives them to the calls of a
// block as if they were whole bytes at another address, without a word. The check runs on blocks
// and on the functions' forms that blocks call, before the optimiser makes something else of a
// bit-field: what is refused does not depend on its level.

// GCC's headers need those before them.
// clang-format off
#include <gcc-plugin.h>
#include <tree.h>
#include <basic-block.h>
#include <gimple.h>
#include <gimple-iterator.h>
#include <trans-mem.h>
#include <tree-pass.h>
#include <cgraph.h>
#include <context.h>
#include <diagnostic-core.h>
#include <plugin-version.h>
// clang-format on

int plugin_is_GPL_compatible;  // NOLINT(readability-identifier-naming): GCC looks for it

namespace {

constexpr const char* message =
    "a bit-field in a transaction, which GCC compiles wrongly: make it a member of a whole type, "
    "such as %<bool%> or %<uint8_t%> (perdure)";

// Whether it is memory that the calls of a block get: not a local that nothing points to.
bool is_shared(tree reference) {
  const tree base = get_base_address(reference);
  return base == NULL_TREE || !DECL_P(base) || TREE_ADDRESSABLE(base) || is_global_var(base);
}

bool is_bit_field(tree operand) {
  if (operand == NULL_TREE) return false;
  for (tree t = operand; handled_component_p(t); t = TREE_OPERAND(t, 0))
    if (TREE_CODE(t) == COMPONENT_REF && DECL_BIT_FIELD(TREE_OPERAND(t, 1)))
      return is_shared(operand);
  return false;
}

constexpr pass_data description = {
    GIMPLE_PASS, "perdure_bit_fields", OPTGROUP_NONE, TV_NONE, PROP_cfg, 0, 0, 0, 0};

class Check final : public gimple_opt_pass {
 public:
  explicit Check(gcc::context* context) : gimple_opt_pass(description, context) {}
  bool gate(function*) override { return flag_tm; }
  unsigned int execute(function* f) override {
    const bool all = decl_is_tm_clone(f->decl);
    compute_transaction_bits();
    basic_block block;
    FOR_EACH_BB_FN(block, f)
    for (gimple_stmt_iterator at = gsi_start_bb(block); !gsi_end_p(at); gsi_next(&at)) {
      gimple* const statement = gsi_stmt(at);
      if (!is_gimple_assign(statement) || (!all && !gimple_in_transaction(statement))) continue;
      if (is_bit_field(gimple_assign_lhs(statement)) || is_bit_field(gimple_assign_rhs1(statement)))
        error_at(gimple_location(statement), message);
    }
    return 0;
  }
};

}  // namespace

int plugin_init(plugin_name_args* plugin, plugin_gcc_version* version) {
  if (!plugin_default_version_check(version, &gcc_version)) {
    error(
        "perdure: found GCC %s, expected %s, which this plug-in was built for: build Perdure with "
        "the compiler that it is used with",
        version->basever, gcc_version.basever);
    return 1;
  }
  register_pass_info pass{};
  pass.pass = new Check(g);
  pass.reference_pass_name = "ehdisp";
  pass.ref_pass_instance_number = 1;
  pass.pos_op = PASS_POS_INSERT_AFTER;
  register_callback(plugin->base_name, PLUGIN_PASS_MANAGER_SETUP, nullptr, &pass);
  return 0;
}
