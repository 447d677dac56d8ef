// SPDX-License-Identifier: BSD-3-Clause
//
// A plug-in of GCC that refuses what GCC 12 compiles wrongly in transactions, without a word:
//   bit-fields    it gives them to the calls of a block as if they were whole bytes at another
//                 address
//   struct f()    of a function that it takes for pure, because it reads no memory: it stores the
//                 struct that is returned plainly to where the block wants it
// The check runs on blocks and on the functions' forms that blocks call, before the optimiser makes
// something else of a bit-field.

// GCC's headers need those before them.
// clang-format off
#include <gcc-plugin.h>
#include <tree.h>
#include <basic-block.h>
#include <gimple.h>
#include <gimple-iterator.h>
#include <gimple-walk.h>
#include <trans-mem.h>
#include <tree-pass.h>
#include <cgraph.h>
#include <context.h>
#include <diagnostic-core.h>
#include <plugin-version.h>
// clang-format on

int plugin_is_GPL_compatible;  // NOLINT(readability-identifier-naming): GCC looks for it

namespace {

constexpr const char* of_bit_fields =
    "a bit-field in a transaction, which GCC compiles wrongly: make it a member of a whole type, "
    "such as %<bool%> or %<uint8_t%> (perdure)";
constexpr const char* of_results =
    "a struct that a function returns, stored to memory that a transaction shares, which GCC "
    "compiles wrongly where the function reads no memory: store it to a local first (perdure)";

// Whether it is memory that the calls of a block get: not a local that nothing points to. A local
// that the function returns may become the memory that its caller gives for that.
bool is_shared(tree reference, function* f) {
  const tree base = get_base_address(reference), result = DECL_RESULT(f->decl);
  if (base == NULL_TREE || !DECL_P(base) || needs_to_live_in_memory(base)) return true;
  return aggregate_value_p(result, f->decl) &&
         TYPE_MAIN_VARIANT(TREE_TYPE(base)) == TYPE_MAIN_VARIANT(TREE_TYPE(result));
}

bool is_bit_field(tree operand, function* f) {
  if (operand == NULL_TREE) return false;
  for (tree t = operand; handled_component_p(t); t = TREE_OPERAND(t, 0))
    if (TREE_CODE(t) == COMPONENT_REF && DECL_BIT_FIELD(TREE_OPERAND(t, 1)))
      return is_shared(operand, f);
  return false;
}

// Whether it is a call that GCC leaves as it is, with a result that it can't hold in a register.
bool is_plain_result(gimple* call, function* f) {
  const tree to = gimple_call_lhs(call), callee = gimple_call_fndecl(call);
  if (to == NULL_TREE || is_gimple_reg_type(TREE_TYPE(to)) || !is_shared(to, f)) return false;
  return (gimple_call_flags(call) & ECF_CONST) != 0 || (callee != NULL_TREE && is_tm_pure(callee));
}

constexpr pass_data of_sequences = {
    GIMPLE_PASS, "perdure_results", OPTGROUP_NONE, TV_NONE, PROP_gimple_any, 0, 0, 0, 0};
constexpr pass_data of_blocks = {
    GIMPLE_PASS, "perdure_bit_fields", OPTGROUP_NONE, TV_NONE, PROP_cfg, 0, 0, 0, 0};

// A block whose only store is such a result is taken for one without any, and dropped before there
// are basic blocks.
class CheckSequences final : public gimple_opt_pass {
 public:
  explicit CheckSequences(gcc::context* context) : gimple_opt_pass(of_sequences, context) {}
  bool gate(function*) override { return flag_tm; }
  unsigned int execute(function* f) override {
    walk(gimple_body(f->decl), nullptr);
    return 0;
  }

 private:
  // `block`: the transaction that the statements are in; null: none.
  static void walk(gimple_seq statements, gimple* block) {
    walk_stmt_info info{};
    info.info = block;
    walk_gimple_seq(statements, visit, nullptr, &info);
  }
  static tree visit(gimple_stmt_iterator* at, bool* handled, walk_stmt_info* info) {
    gimple* const statement = gsi_stmt(*at);
    *handled = false;
    if (gtransaction* const block = dyn_cast<gtransaction*>(statement)) {
      walk(gimple_transaction_body(block), statement);
      *handled = true;
    } else if (info->info != nullptr && is_gimple_call(statement) &&
               is_plain_result(statement, cfun)) {
      error_at(gimple_location(statement), of_results);
    }
    return NULL_TREE;
  }
};

class Check final : public gimple_opt_pass {
 public:
  explicit Check(gcc::context* context) : gimple_opt_pass(of_blocks, context) {}
  bool gate(function*) override { return flag_tm; }
  unsigned int execute(function* f) override {
    const bool all = decl_is_tm_clone(f->decl);
    compute_transaction_bits();
    basic_block block;
    FOR_EACH_BB_FN(block, f)
    for (gimple_stmt_iterator at = gsi_start_bb(block); !gsi_end_p(at); gsi_next(&at)) {
      gimple* const statement = gsi_stmt(at);
      if (!all && !gimple_in_transaction(statement)) continue;
      if (is_gimple_call(statement) && is_plain_result(statement, f))
        error_at(gimple_location(statement), of_results);
      if (is_gimple_assign(statement) && (is_bit_field(gimple_assign_lhs(statement), f) ||
                                          is_bit_field(gimple_assign_rhs1(statement), f)))
        error_at(gimple_location(statement), of_bit_fields);
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
  register_pass_info sequences{}, blocks{};
  sequences.pass = new CheckSequences(g);
  sequences.reference_pass_name = "tmlower";
  sequences.ref_pass_instance_number = 1;
  sequences.pos_op = PASS_POS_INSERT_BEFORE;
  blocks.pass = new Check(g);
  blocks.reference_pass_name = "ehdisp";
  blocks.ref_pass_instance_number = 1;
  blocks.pos_op = PASS_POS_INSERT_AFTER;
  register_callback(plugin->base_name, PLUGIN_PASS_MANAGER_SETUP, nullptr, &sequences);
  register_callback(plugin->base_name, PLUGIN_PASS_MANAGER_SETUP, nullptr, &blocks);
  return 0;
}
