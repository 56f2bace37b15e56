"""Takes the waits behind single accesses of shared memory out of a SPIR-V module.

In the Vulkan memory model, which cooperative matrices ask for, glslang makes every write of a shared variable available to
the workgroup and every read of one visible from it by itself, as GLSL calls these variables coherent. Drivers then wait for
each access before the next. The shaders here exchange shared memory across barriers alone, so that it is enough when barriers
do both; they say so by MakeAvailable and MakeVisible, which glslang leaves out of them.
"""

from check_spirv import each_instruction, instructions

MEMORY_MODEL, VULKAN = 14, 3
TYPE_POINTER, CONSTANT, VARIABLE, WORKGROUP = 32, 43, 59, 4
ACCESS_CHAINS = (65, 66)
CONTROL_BARRIER, MEMORY_BARRIER = 224, 225
# Of instructions with memory operands: where their pointer is, and where these operands begin, behind the first word.
MEMORY_OPERANDS = {61: (2, 3), 62: (0, 2), 4457: (2, 5), 4458: (0, 4)}  # load, store, of matrices
ALIGNED, MAKE_AVAILABLE, MAKE_VISIBLE = 0x2, 0x8, 0x10
ACQUIRE_RELEASE, OF_WORKGROUP = 0x8, 0x100  # memory semantics
BOTH = 0x2000 | 0x4000


def _without_scopes(operands):
    """Memory operands less MakePointerAvailable and MakePointerVisible, each of which has a scope behind the mask."""
    mask, extra, kept = operands[0], list(operands[1:]), []
    for bit in (ALIGNED, MAKE_AVAILABLE, MAKE_VISIBLE):
        if mask & bit:
            value = extra.pop(0)
            kept += [value] if bit == ALIGNED else []
    return [mask & ~(MAKE_AVAILABLE | MAKE_VISIBLE)] + kept + extra


def order_by_barriers(words):
    """The module with shared memory made available and visible by barriers instead of by each access; one of another
    memory model as it is."""
    model = next(i.operands[1] for i in each_instruction(words) if i.opcode == MEMORY_MODEL)
    if model != VULKAN:
        return words
    module = instructions(words)
    pointer_class = {i.operands[0]: i.operands[1] for i in module if i.opcode == TYPE_POINTER}
    shared = {i.operands[1] for i in module
              if i.opcode in (VARIABLE, *ACCESS_CHAINS) and pointer_class.get(i.operands[0]) == WORKGROUP}
    semantics = {i.operands[{CONTROL_BARRIER: 2, MEMORY_BARRIER: 1}[i.opcode]] for i in module
                 if i.opcode in (CONTROL_BARRIER, MEMORY_BARRIER)}
    bound, renamed, result = words[3], {}, []
    for i in module:
        operands = list(i.operands)
        if i.opcode in MEMORY_OPERANDS:
            pointer, at = MEMORY_OPERANDS[i.opcode]
            if operands[pointer] in shared and len(operands) > at:
                operands[at:] = _without_scopes(operands[at:])
        elif i.opcode in (CONTROL_BARRIER, MEMORY_BARRIER):
            operands[-1] = renamed.get(operands[-1], operands[-1])
        result += [(len(operands) + 1) << 16 | i.opcode, *operands]
        if i.opcode == CONSTANT and operands[1] in semantics:
            value = operands[2]
            if value & OF_WORKGROUP and value & ACQUIRE_RELEASE and value & BOTH != BOTH:
                result += [4 << 16 | CONSTANT, operands[0], bound, value | BOTH]
                renamed[operands[1]] = bound
                bound += 1
    return [*words[:3], bound, words[4], *result]
