// SPDX-License-Identifier: BSD-3-Clause
#include "plain/pass/instrument.hpp"

#include <llvm/Analysis/ValueTracking.h>  // getConstantStringInfo
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

#include "plain/pass/calls.hpp"

namespace perdure::plain::pass {
namespace {

using namespace llvm;  // NOLINT(google-build-using-namespace)

// Whether no one else has these bytes: they are of the function's own frame, which is gone when the
// block runs again, or never change. Where the offset is not known, they may lie anywhere: a struct
// may have the distance to something else.
bool is_own(const Value* pointer, std::uint64_t bytes, const DataLayout& layout) {
  if (const auto* const at = dyn_cast<GEPOperator>(pointer);
      at != nullptr && !at->hasAllConstantIndices()) {
    // An element of an array that is the whole object.
    const auto* const local = dyn_cast<AllocaInst>(at->getPointerOperand());
    const auto* const table = dyn_cast<GlobalVariable>(at->getPointerOperand());
    const Type* const whole = local != nullptr && !local->isArrayAllocation()
                                  ? local->getAllocatedType()
                              : table != nullptr && table->isConstant() ? table->getValueType()
                                                                        : nullptr;
    return whole != nullptr && whole->isArrayTy() && at->isInBounds() &&
           at->getSourceElementType() == whole && at->getNumIndices() == 2 &&
           layout.getTypeAllocSize(at->getResultElementType()) >= bytes;
  }
  APInt offset(layout.getIndexTypeSizeInBits(pointer->getType()), 0);
  const Value* const object = pointer->stripAndAccumulateConstantOffsets(layout, offset, true);
  std::uint64_t size = 0;
  if (const auto* const local = dyn_cast<AllocaInst>(object)) {
    const auto known = local->getAllocationSize(layout);
    size = known && !known->isScalable() ? known->getFixedValue() : 0;
  } else if (const auto* const global = dyn_cast<GlobalVariable>(object)) {
    size =
        global->isConstant() ? layout.getTypeAllocSize(global->getValueType()).getFixedValue() : 0;
  } else if (const auto* const argument = dyn_cast<Argument>(object)) {
    size = argument->hasByValAttr()
               ? layout.getTypeAllocSize(argument->getParamByValType()).getFixedValue()
               : 0;
  }
  return !offset.isNegative() && bytes <= size && offset.ule(size - bytes);
}
// The same of what a call of the compiler's copies or fills.
bool is_own(const Value* pointer, const Value* bytes, const DataLayout& layout) {
  const auto* const known = dyn_cast<ConstantInt>(bytes);
  return known != nullptr && is_own(pointer, known->getZExtValue(), layout);
}

// The ABI's letters for a type that one call can carry, and the type that the call has; null:
// bytes.
Type* carrier_of(Type* type, const DataLayout& layout, std::string& letters) {
  LLVMContext& context = type->getContext();
  if (type->isFloatTy()) return letters = "F", type;
  if (type->isDoubleTy()) return letters = "D", type;
  if (type->isIntegerTy(8) || type->isIntegerTy(16) || type->isIntegerTy(32) ||
      type->isIntegerTy(64))
    return letters = "U" + std::to_string(type->getIntegerBitWidth() / 8), type;
  if (type->isPointerTy()) return letters = "U8", Type::getInt64Ty(context);
  const auto* const vector = dyn_cast<FixedVectorType>(type);
  if (vector != nullptr && !vector->getElementType()->isPointerTy() &&
      layout.getTypeSizeInBits(type) == 128)
    return letters = "M128", FixedVectorType::get(Type::getFloatTy(context), 4);
  return nullptr;
}

// A place of the function's own, as large as a value of this type.
AllocaInst* place_for(Type* type, Function& function) {
  IRBuilder<> builder(&*function.getEntryBlock().getFirstInsertionPt());
  return builder.CreateAlloca(type);
}

// A declaration of that name, which a block of this file may have made, becomes the definition.
void give_name(GlobalValue& form, const std::string& name) {
  if (Function* const declared = form.getParent()->getFunction(name); declared != nullptr) {
    declared->replaceAllUsesWith(&form);
    declared->eraseFromParent();
  }
  form.setName(name);
}

template <class Attributes>
void drop_what_barriers_break(Attributes& of, unsigned arguments) {
  of.removeFnAttr(Attribute::Memory);
  of.removeFnAttr(Attribute::NoSync);
  of.removeFnAttr(Attribute::NoFree);
  of.removeFnAttr(Attribute::Speculatable);
  for (unsigned i = 0; i < arguments; ++i)
    for (const auto kind :
         {Attribute::ReadNone, Attribute::ReadOnly, Attribute::WriteOnly, Attribute::NoFree})
      of.removeParamAttr(i, kind);
}

}  // namespace

Instrumenter::Instrumenter(Module& module) : module_(module) {
  const GlobalVariable* const marks = module.getNamedGlobal("llvm.global.annotations");
  if (marks == nullptr || !marks->hasInitializer()) return;
  const auto* const all = dyn_cast<ConstantArray>(marks->getInitializer());
  for (unsigned i = 0; all != nullptr && i < all->getNumOperands(); ++i) {
    const auto* const one = cast<ConstantStruct>(all->getOperand(i));
    const auto* const function = dyn_cast<Function>(one->getOperand(0)->stripPointerCasts());
    StringRef text;
    if (function != nullptr && getConstantStringInfo(one->getOperand(1), text) && text == safe_mark)
      safe_.insert(function);
  }
  // A virtual function is also called through its thunks.
  for (const Function& thunk : module)
    if (const std::string of = behind_thunk(thunk.getName()); !of.empty())
      if (const Function* const function = module.getFunction(of);
          function != nullptr && is_safe(*function))
        safe_.insert(&thunk);
}

FunctionCallee Instrumenter::run_time(StringRef name, Type* result, ArrayRef<Type*> arguments) {
  FunctionCallee callee =
      module_.getOrInsertFunction(name, FunctionType::get(result, arguments, false));
  if (auto* const function = dyn_cast<Function>(callee.getCallee())) function->setDoesNotThrow();
  return callee;
}

// To memory of the function's own, which need not be saved.
void Instrumenter::fetch(IRBuilderBase& builder, Value* to, Value* from, Value* bytes) {
  Type* const pointer = builder.getPtrTy();
  builder.CreateCall(run_time("perdure_plain_fetch", builder.getVoidTy(),
                              {pointer, pointer, builder.getInt64Ty()}),
                     {to, from, bytes});
}

Function* Instrumenter::form_of(Function& function) {
  Function* const form = make(function);
  while (!unwritten_.empty()) {
    Function* const next = unwritten_.back();
    unwritten_.pop_back();
    rewrite(*next);
  }
  return form;
}

// A copy, which is not rewritten yet; of a function of another file the declaration of its form.
Function* Instrumenter::make(Function& function) {
  if (const auto found = forms_.find(&function); found != forms_.end()) return found->second;
  const std::string name = instrumented_name(function.getName());
  Function* form = nullptr;
  if (!is_made_here(function)) {
    form = cast<Function>(
        module_.getOrInsertFunction(name, function.getFunctionType(), function.getAttributes())
            .getCallee());
    drop_what_barriers_break(*form, static_cast<unsigned>(form->arg_size()));
  } else {
    ValueToValueMapTy values;
    form = CloneFunction(&function, values);
    give_name(*form, name);
    // Where it is not marked, no other file calls it.
    form->setComdat(nullptr);
    if (!is_safe(function))
      form->setLinkage(GlobalValue::InternalLinkage);
    else if (function.hasComdat())
      form->setComdat(module_.getOrInsertComdat(form->getName()));
    if (form->hasLocalLinkage()) {
      form->setVisibility(GlobalValue::DefaultVisibility);
      form->setDSOLocal(true);
    }
    drop_what_barriers_break(*form, static_cast<unsigned>(form->arg_size()));
    unwritten_.push_back(form);
    in_order_.emplace_back(&function, form);
  }
  forms_[&function] = form;
  return form;
}

void Instrumenter::rewrite(Function& form) {
  SmallVector<Instruction*> all;
  for (BasicBlock& block : form)
    for (Instruction& i : block) all.push_back(&i);
  for (Instruction* const i : all) {
    if (auto* const load = dyn_cast<LoadInst>(i)) {
      rewrite(*load);
    } else if (auto* const store = dyn_cast<StoreInst>(i)) {
      rewrite(*store);
    } else if (auto* const memory = dyn_cast<MemIntrinsic>(i)) {
      rewrite(*memory);
    } else if (auto* const call = dyn_cast<CallBase>(i);
               call != nullptr && !isa<IntrinsicInst>(i)) {
      rewrite(*call);
    }
  }
}

void Instrumenter::rewrite(LoadInst& load) {
  const DataLayout& layout = module_.getDataLayout();
  Type* const type = load.getType();
  const std::uint64_t bytes = layout.getTypeStoreSize(type);
  if (is_own(load.getPointerOperand(), bytes, layout)) return;
  IRBuilder<> builder(&load);
  Type* const pointer = builder.getPtrTy();
  std::string letters;
  Value* value = nullptr;
  if (Type* const carrier = carrier_of(type, layout, letters); carrier != nullptr) {
    value = builder.CreateCall(run_time("_ITM_R" + letters, carrier, {pointer}),
                               {load.getPointerOperand()});
    value = type->isPointerTy() ? builder.CreateIntToPtr(value, type)
                                : builder.CreateBitCast(value, type);
  } else {
    AllocaInst* const place = place_for(type, *load.getFunction());
    fetch(builder, place, load.getPointerOperand(), builder.getInt64(bytes));
    value = builder.CreateLoad(type, place);
  }
  load.replaceAllUsesWith(value);
  load.eraseFromParent();
}

void Instrumenter::rewrite(StoreInst& store) {
  const DataLayout& layout = module_.getDataLayout();
  Value* value = store.getValueOperand();
  Type* const type = value->getType();
  const std::uint64_t bytes = layout.getTypeStoreSize(type);
  if (is_own(store.getPointerOperand(), bytes, layout)) return;
  IRBuilder<> builder(&store);
  Type* const pointer = builder.getPtrTy();
  std::string letters;
  if (Type* const carrier = carrier_of(type, layout, letters); carrier != nullptr) {
    value = type->isPointerTy() ? builder.CreatePtrToInt(value, carrier)
                                : builder.CreateBitCast(value, carrier);
    builder.CreateCall(run_time("_ITM_W" + letters, builder.getVoidTy(), {pointer, carrier}),
                       {store.getPointerOperand(), value});
  } else {
    AllocaInst* const place = place_for(type, *store.getFunction());
    builder.CreateStore(value, place);
    builder.CreateCall(
        run_time("_ITM_memcpyRnWt", pointer, {pointer, pointer, builder.getInt64Ty()}),
        {store.getPointerOperand(), place, builder.getInt64(bytes)});
  }
  store.eraseFromParent();
}

void Instrumenter::rewrite(MemIntrinsic& call) {
  const auto* const transfer = dyn_cast<MemTransferInst>(&call);
  const DataLayout& layout = module_.getDataLayout();
  const bool to_own = is_own(call.getRawDest(), call.getLength(), layout);
  if (to_own && (transfer == nullptr || is_own(transfer->getRawSource(), call.getLength(), layout)))
    return;
  IRBuilder<> builder(&call);
  Type* const pointer = builder.getPtrTy();
  Value* const length = builder.CreateZExtOrTrunc(call.getLength(), builder.getInt64Ty());
  if (transfer != nullptr && to_own) {
    fetch(builder, call.getRawDest(), transfer->getRawSource(), length);
  } else if (transfer != nullptr) {
    const char* const name = isa<MemMoveInst>(call) ? "_ITM_memmoveRtWt" : "_ITM_memcpyRtWt";
    builder.CreateCall(run_time(name, pointer, {pointer, pointer, builder.getInt64Ty()}),
                       {call.getRawDest(), transfer->getRawSource(), length});
  } else {
    Value* const byte = builder.CreateZExt(cast<MemSetInst>(call).getValue(), builder.getInt32Ty());
    builder.CreateCall(
        run_time("_ITM_memsetW", pointer, {pointer, builder.getInt32Ty(), builder.getInt64Ty()}),
        {call.getRawDest(), byte, length});
  }
  call.eraseFromParent();
}

void Instrumenter::rewrite(CallBase& call) {
  const GlobalValue* const callee = callee_of(call);
  IRBuilder<> builder(&call);
  const DataLayout& layout = module_.getDataLayout();
  // The code generator would copy the argument plainly.
  for (unsigned i = 0; i < call.arg_size(); ++i) {
    if (!call.isByValArgument(i)) continue;
    Type* const type = call.getParamByValType(i);
    const std::uint64_t bytes = layout.getTypeStoreSize(type);
    if (is_own(call.getArgOperand(i), bytes, layout)) continue;
    AllocaInst* const place = place_for(type, *call.getFunction());
    if (const MaybeAlign align = call.getParamAlign(i)) place->setAlignment(*align);
    fetch(builder, place, call.getArgOperand(i), builder.getInt64(bytes));
    call.setArgOperand(i, place);
  }
  if (Function* const destructor = thrown_destructor(call); destructor != nullptr)
    call.setArgOperand(2, make(*destructor));
  if (callee == nullptr) {
    Type* const pointer = builder.getPtrTy();
    call.setCalledOperand(builder.CreateCall(run_time("_ITM_getTMCloneSafe", pointer, {pointer}),
                                             {call.getCalledOperand()}));
  } else if (const std::string name = replacement_of(*callee); !name.empty()) {
    call.setCalledOperand(module_.getOrInsertFunction(name, call.getFunctionType()).getCallee());
    // What the compiler knows of malloc does not hold of its replacement.
    call.removeFnAttr(Attribute::Builtin);
  } else if (runs_as_it_is(*callee)) {
    return;
  } else {
    call.setCalledOperand(make(*const_cast<Function*>(cast<Function>(callee))));
  }
  drop_what_barriers_break(call, static_cast<unsigned>(call.arg_size()));
}

void Instrumenter::write_aliases() {
  for (GlobalAlias& alias : module_.aliases()) {
    auto* const function = dyn_cast<Function>(alias.getAliasee()->stripPointerCasts());
    if (function == nullptr || !is_safe(*function) || !forms_.contains(function)) continue;
    auto* const form = GlobalAlias::create(alias.getValueType(), 0, alias.getLinkage(), "",
                                           forms_.lookup(function), &module_);
    give_name(*form, instrumented_name(alias.getName()));
    form->setVisibility(alias.getVisibility());
  }
}

void Instrumenter::write_table() {
  std::vector<Constant*> entries;
  Type* const pointer = PointerType::get(module_.getContext(), 0);
  StructType* const entry = StructType::get(pointer, pointer);
  for (const auto& [function, form] : in_order_)
    if (function->hasAddressTaken() || !function->hasLocalLinkage())
      if (!function->hasAvailableExternallyLinkage())
        entries.push_back(ConstantStruct::get(entry, {function, form}));
  if (entries.empty()) return;
  ArrayType* const type = ArrayType::get(entry, entries.size());
  auto* const table = new GlobalVariable(module_, type, false, GlobalValue::InternalLinkage,
                                         ConstantArray::get(type, entries), "perdure_forms");
  // As GCC's: the linker puts them together, and crtbegin registers the whole.
  table->setSection(".tm_clone_table");
  table->setAlignment(Align(8));
  // AddressSanitizer would put a gap between it and the next file's.
  GlobalValue::SanitizerMetadata plain = {};
  plain.NoAddress = true;
  table->setSanitizerMetadata(plain);
  appendToUsed(module_, {table});
}

}  // namespace perdure::plain::pass
