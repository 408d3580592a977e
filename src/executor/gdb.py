"""Commands for gdb in a build with the executor: `gdb -x src/executor/gdb.py --args PROGRAM ...`.

info cuda-threads          the threads of the kernel that runs, those alike together, and what they wait for
info mbarriers             its barriers: phase, parity, arrivals, bytes, and what is missing
info copies                its copies and stores that are under way
cuda-thread INDEX [RANK]   the stack of a thread that does not run, of block RANK of the cluster
cuda-break LOCATION INDEX  stops where thread INDEX of a block comes by
"""

import gdb

REGISTERS = ("r15", "r14", "r13", "r12", "rbx", "rbp", "rip")  # as src/executor/fiber.cpp saves them


def call(function):
    """Calls a function of the program. gdb 13 cannot write back the vector registers of a processor with AMX, and says so
    when all else is done: the functions keep them."""
    try:
        gdb.execute(f"call (void){function}")
    except gdb.error as error:
        if "extended state" not in str(error):
            raise


class Info(gdb.Command):
    def __init__(self, name, what, text):
        self.__doc__ = text
        self.what = what
        super().__init__("info " + name, gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        call(f"tmaops_executor_print('{self.what}')")


class CudaThread(gdb.Command):
    """cuda-thread INDEX [RANK]: the stack of a thread of the kernel that does not run."""

    def __init__(self):
        super().__init__("cuda-thread", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        words = gdb.string_to_argv(argument)
        if not words:
            raise gdb.GdbError(
                "cuda-thread takes the index of a thread in its block, and the block's rank in the cluster"
            )
        index, rank = int(words[0]), int(words[1]) if len(words) > 1 else 0
        call(f"tmaops_executor_find({index}, {rank})")
        saved = int(gdb.parse_and_eval("*(unsigned long*)&tmaops_executor_found"))
        if saved == 0:
            raise gdb.GdbError(
                f"thread {index} of block {rank} runs, has not begun or has ended: see `info cuda-threads`"
            )
        gdb.execute("frame 0", to_string=True)
        before = {name: int(gdb.parse_and_eval("(unsigned long)$" + name)) for name in (*REGISTERS, "rsp")}
        words_there = gdb.selected_inferior().read_memory(saved, 8 * len(REGISTERS)).tobytes()
        try:
            for number, name in enumerate(REGISTERS):
                gdb.execute(f"set ${name} = {int.from_bytes(words_there[8 * number : 8 * number + 8], 'little')}")
            gdb.execute(f"set $rsp = {saved + 8 * len(REGISTERS)}")
            gdb.execute("backtrace")
        finally:
            for name, value in before.items():
                gdb.execute(f"set ${name} = {value}")


class CudaBreak(gdb.Command):
    """cuda-break LOCATION INDEX: a breakpoint for thread INDEX of a block alone."""

    def __init__(self):
        super().__init__("cuda-break", gdb.COMMAND_BREAKPOINTS)

    def invoke(self, argument, from_tty):
        location, index = argument.rsplit(None, 1)
        gdb.execute(f"break {location} if *(unsigned*)&threadIdx == {int(index)}")


Info("cuda-threads", "t", "The threads of the kernel that runs, and what they wait for.")
Info("mbarriers", "b", "The barriers of the kernel that runs.")
Info("copies", "c", "The copies of the kernel that are under way.")
CudaThread()
CudaBreak()
