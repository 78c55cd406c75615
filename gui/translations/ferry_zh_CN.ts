<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name>ExportWords</name>
    <message>
        <source>Choose a folder to write to.</source>
        <translation>请选择要写入的文件夹。</translation>
    </message>
    <message>
        <source>Give the whole path of the folder, from / on.</source>
        <translation>请给出文件夹的完整路径，从 / 开始。</translation>
    </message>
    <message>
        <source>A file is there already. Nothing is overwritten: choose a new folder.</source>
        <translation>该位置已有文件。不会覆盖任何内容：请选择新文件夹。</translation>
    </message>
    <message>
        <source>The model itself is there. Choose a new folder.</source>
        <translation>模型本身就在这里。请选择新文件夹。</translation>
    </message>
    <message>
        <source>The folder is there and not empty. Nothing is overwritten: choose a new folder.</source>
        <translation>文件夹已存在且不为空。不会覆盖任何内容：请选择新文件夹。</translation>
    </message>
    <message>
        <source>%1 is no folder.</source>
        <translation>%1 不是文件夹。</translation>
    </message>
    <message>
        <source>Nothing may be written to %1.</source>
        <translation>没有权限写入 %1。</translation>
    </message>
    <message>
        <source>The disk is too full: %1 are needed and %2 are free.</source>
        <translation>磁盘空间不足：需要 %1，可用 %2。</translation>
    </message>
    <message>
        <source>Choose a file to write.</source>
        <translation>请选择要写入的文件。</translation>
    </message>
    <message>
        <source>Give the whole path of the file, from / on.</source>
        <translation>请给出文件的完整路径，从 / 开始。</translation>
    </message>
    <message>
        <source>Give the file a name that ends in %1.</source>
        <translation>文件名须以 %1 结尾。</translation>
    </message>
    <message>
        <source>It is there already. Nothing is overwritten: choose a new file.</source>
        <translation>该文件已存在。不会覆盖任何内容：请选择新文件。</translation>
    </message>
    <message>
        <source>This is the name of a GGUF file. Choose a folder to write to.</source>
        <translation>这是 GGUF 文件的名称。请选择要写入的文件夹。</translation>
    </message>
    <message>
        <source>%1 is left of an export that was interrupted. Remove it, or choose another name.</source>
        <translation>%1 是一次中断的导出留下的。请将其删除，或换一个名称。</translation>
    </message>
    <message>
        <source>A GGUF file holds a language model that continues texts, and this is none. Choose the Hugging Face folder.</source>
        <translation>GGUF 文件只存放能续写文本的语言模型，而此模型不是。请选择 Hugging Face 文件夹。</translation>
    </message>
</context>
<context>
    <name>FindingTexts</name>
    <message>
        <source>Raise the limit of locked memory (memlock) for your user, or for the container.</source>
        <translation>提高您的用户或容器的锁定内存上限（memlock）。</translation>
    </message>
    <message>
        <source>Install Ferry again, with the half that trains.</source>
        <translation>请重新安装 Ferry，并包含训练程序。</translation>
    </message>
    <message>
        <source>Start Ferry without the variable FERRY_SIMD.</source>
        <translation>启动 Ferry 时不要设置变量 FERRY_SIMD。</translation>
    </message>
    <message>
        <source>A CPU with AVX2 updates parameters several times faster. If you set the variable FERRY_SIMD, start Ferry without it.</source>
        <translation>支持 AVX2 的 CPU 更新参数要快数倍。如果您设置了变量 FERRY_SIMD，请取消后再启动 Ferry。</translation>
    </message>
    <message>
        <source>Install Ferry again: its folder of presets is missing.</source>
        <translation>请重新安装 Ferry：预设文件夹不存在。</translation>
    </message>
    <message>
        <source>Give the container or service more memory, or close other programs.</source>
        <translation>给容器或服务更多内存，或关闭其他程序。</translation>
    </message>
    <message>
        <source>Close other programs, or add memory.</source>
        <translation>关闭其他程序，或增加内存。</translation>
    </message>
    <message>
        <source>To use more, raise the limit of the container or service.</source>
        <translation>要使用更多内存，请提高容器或服务的上限。</translation>
    </message>
    <message>
        <source>Close programs that hold much memory before a run.</source>
        <translation>运行之前请关闭占用大量内存的程序。</translation>
    </message>
    <message>
        <source>Make room, or choose a runs folder on another disk in Settings.</source>
        <translation>腾出空间，或在“设置”中选择其他磁盘上的运行文件夹。</translation>
    </message>
    <message>
        <source>Update the NVIDIA driver in Windows to 580 or newer.</source>
        <translation>请在 Windows 中将 NVIDIA 驱动更新到 580 或更高版本。</translation>
    </message>
    <message>
        <source>Install the NVIDIA driver 580 or newer: from the packages of your system, or from nvidia.com/drivers.</source>
        <translation>请安装 580 或更高版本的 NVIDIA 驱动：来自系统的软件包，或 NVIDIA 网站。</translation>
    </message>
    <message>
        <source>Install the NVIDIA driver again. NVIDIA&apos;s own program shows the same fault.</source>
        <translation>请重新安装 NVIDIA 驱动。NVIDIA 自带的程序会显示同样的错误。</translation>
    </message>
    <message>
        <source>The driver was updated since the machine started. Restart the machine.</source>
        <translation>本机启动后驱动被更新过。请重新启动本机。</translation>
    </message>
    <message>
        <source>Load the driver, or restart the machine. A container must be given the GPU when it is started.</source>
        <translation>请加载驱动，或重新启动本机。容器启动时必须为其分配 GPU。</translation>
    </message>
    <message>
        <source>Your user may not use the GPU. An administrator can allow it.</source>
        <translation>您的用户无权使用 GPU。管理员可以授权。</translation>
    </message>
    <message>
        <source>Start Ferry without the variable CUDA_VISIBLE_DEVICES.</source>
        <translation>启动 Ferry 时不要设置变量 CUDA_VISIBLE_DEVICES。</translation>
    </message>
    <message>
        <source>This card cannot be used. A newer one can.</source>
        <translation>此显卡无法使用，需要更新的显卡。</translation>
    </message>
    <message>
        <source>Install Ferry again on this machine, with CUDA.</source>
        <translation>请在本机重新安装带 CUDA 的 Ferry。</translation>
    </message>
    <message>
        <source>Build Ferry again for this card.</source>
        <translation>请为此显卡重新构建 Ferry。</translation>
    </message>
    <message>
        <source>Measure this machine.</source>
        <translation>请测量本机。</translation>
    </message>
    <message>
        <source>Close other programs that hold much memory, and measure again.</source>
        <translation>关闭其他占用大量内存的程序，然后重新测量。</translation>
    </message>
    <message>
        <source>Close what else uses the card, and measure again. If that is not it: put the card into the slot of the processor, without a riser cable, and look at the slot&apos;s PCIe generation in the BIOS.</source>
        <translation>关闭其他使用显卡的程序，然后重新测量。如果仍然如此：请把显卡直接插在处理器直连的插槽上，不用转接线，并在 BIOS 中查看该插槽的 PCIe 代数。</translation>
    </message>
    <message>
        <source>Close what else computes, and measure again. If you set the variable FERRY_SIMD, start Ferry without it.</source>
        <translation>关闭其他正在计算的程序，然后重新测量。如果您设置了变量 FERRY_SIMD，请取消后再启动 Ferry。</translation>
    </message>
    <message>
        <source>Choose a runs folder on a faster disk in Settings, or save less often.</source>
        <translation>在“设置”中选择更快磁盘上的运行文件夹，或降低保存频率。</translation>
    </message>
    <message>
        <source>Use another drive, and have this one checked.</source>
        <translation>请改用其他硬盘，并检查这块硬盘。</translation>
    </message>
    <message>
        <source>Connect the display to the processor&apos;s own graphics, or leave the desktop more of the GPU memory: the Memory step of New run.</source>
        <translation>把显示器接到处理器的核显上，或在“新建运行”的“内存”步骤为桌面多留一些显存。</translation>
    </message>
    <message>
        <source>Switch them on for programs that ask. That needs an administrator.</source>
        <translation>请为有需要的程序启用。这需要管理员权限。</translation>
    </message>
    <message>
        <source>Mend what it says above, and measure again.</source>
        <translation>请先解决上述问题，然后重新测量。</translation>
    </message>
    <message>
        <source>A run cannot use them either before that is mended.</source>
        <translation>解决之前，运行也无法使用它们。</translation>
    </message>
    <message>
        <source>Allow your user to write to its folder of data, or name another in the variable XDG_DATA_HOME.</source>
        <translation>请允许您的用户写入其数据文件夹，或用变量 XDG_DATA_HOME 指定另一个文件夹。</translation>
    </message>
    <message>
        <source>%1 Until then, training runs on the CPU.</source>
        <translation>%1在此之前，在 CPU 上训练。</translation>
    </message>
    <message>
        <source>In Windows, raise memory= in the file .wslconfig of your user folder. Then start WSL again.</source>
        <translation>在 Windows 用户文件夹的 .wslconfig 文件中调大 memory= 的值，然后重新启动 WSL。</translation>
    </message>
    <message>
        <source>WSL locks only a part of its memory. In Windows, raise memory= in the file .wslconfig of your user folder. Then start WSL again.</source>
        <translation>WSL 只能锁定一部分内存。在 Windows 用户文件夹的 .wslconfig 文件中调大 memory= 的值，然后重新启动 WSL。</translation>
    </message>
</context>
<context>
    <name>MessageWords</name>
    <message>
        <source>choose Resume on the Runs page</source>
        <translation>请在“运行”页选择“继续”</translation>
    </message>
    <message>
        <source>Resume on the Runs page continues it</source>
        <translation>在“运行”页选择“继续”可接着训练</translation>
    </message>
    <message>
        <source>stop it on the Runs page</source>
        <translation>请在“运行”页停止它</translation>
    </message>
    <message>
        <source>make a model of it on the Export page</source>
        <translation>请在“导出”页由它生成模型</translation>
    </message>
    <message>
        <source>see the Doctor page</source>
        <translation>请查看“诊断”页</translation>
    </message>
    <message>
        <source>look at the Doctor page again</source>
        <translation>再次查看“诊断”页</translation>
    </message>
    <message>
        <source>the Doctor page</source>
        <translation>“诊断”页</translation>
    </message>
    <message>
        <source>the Memory step of New run</source>
        <translation>“新建运行”的“内存”步骤</translation>
    </message>
    <message>
        <source>the Runs page</source>
        <translation>“运行”页</translation>
    </message>
    <message>
        <source>the New run page</source>
        <translation>“新建运行”页</translation>
    </message>
    <message>
        <source>the Export page</source>
        <translation>“导出”页</translation>
    </message>
    <message>
        <source>the Try it page</source>
        <translation>“试用”页</translation>
    </message>
    <message>
        <source>“%1”</source>
        <translation>“%1”</translation>
    </message>
    <message>
        <source>“%1: %2”</source>
        <translation>“%1：%2”</translation>
    </message>
    <message>
        <source>choose it as %1</source>
        <translation>请在%1中选择它</translation>
    </message>
</context>
<context>
    <name>ModelFacts</name>
    <message>
        <source>A %1 model is trained for: %2.</source>
        <translation>%1 模型可训练的任务：%2。</translation>
    </message>
    <message>
        <source>%1 B</source>
        <translation>%1 B</translation>
    </message>
    <message>
        <source>%1 M</source>
        <translation>%1 M</translation>
    </message>
</context>
<context>
    <name>ModelFormWords</name>
    <message>
        <source>This model fills masked words (task %1). ferry predict has no answers for it; ferry eval measures it.</source>
        <translation>此模型用于填充掩码词（任务 %1）。ferry predict 无法用它作答；可用 ferry eval 评测。</translation>
    </message>
    <message>
        <source>This model has no labels yet. Train it first: a base model answers nothing.</source>
        <translation>此模型还没有标签。请先训练：基础模型无法作答。</translation>
    </message>
</context>
<context>
    <name>OptionWords</name>
    <message>
        <source>%1 is too small. Expected %2.</source>
        <translation>%1 太小，应为 %2。</translation>
    </message>
    <message>
        <source>%1 is too large. Expected %2.</source>
        <translation>%1 太大，应为 %2。</translation>
    </message>
    <message>
        <source>%1, or auto</source>
        <translation>%1，或 &apos;auto&apos;</translation>
    </message>
    <message>
        <source>%1. Expected %2.</source>
        <translation>%1。应为 %2。</translation>
    </message>
    <message>
        <source>Did you mean %1?</source>
        <translation>您是指 %1 吗？</translation>
    </message>
    <message>
        <source>Write %1, with a point and without a percent sign.</source>
        <translation>请写成 %1，使用小数点，不带百分号。</translation>
    </message>
    <message>
        <source>Expected %1.</source>
        <translation>应为 %1。</translation>
    </message>
</context>
<context>
    <name>RefusalTexts</name>
    <message>
        <source>weights</source>
        <translation>权重</translation>
    </message>
    <message>
        <source>gradients</source>
        <translation>梯度</translation>
    </message>
    <message>
        <source>optimizer states</source>
        <translation>优化器状态</translation>
    </message>
    <message>
        <source>activations</source>
        <translation>激活值</translation>
    </message>
    <message>
        <source>slots</source>
        <translation>槽位</translation>
    </message>
    <message>
        <source>scratch</source>
        <translation>临时空间</translation>
    </message>
    <message>
        <source>cache of samples</source>
        <translation>采样缓存</translation>
    </message>
    <message>
        <source>transfers and tokens</source>
        <translation>传输与词元</translation>
    </message>
    <message>
        <source>%1 in memory, %2</source>
        <translation>内存中的%1，%2</translation>
    </message>
    <message>
        <source>%1 on the GPU, %2</source>
        <translation>GPU 上的%1，%2</translation>
    </message>
    <message>
        <source>%1 on the host, %2</source>
        <translation>主机上的%1，%2</translation>
    </message>
    <message>
        <source>%1 on the drive, %2</source>
        <translation>硬盘上的%1，%2</translation>
    </message>
    <message>
        <source>%1, and %2 on the drive (%3 may be taken)</source>
        <translation>%1，以及硬盘上的 %2（可占用 %3）</translation>
    </message>
    <message>
        <source>%1, and %2 on the drive</source>
        <translation>%1，以及硬盘上的 %2</translation>
    </message>
    <message>
        <source>%1 of GPU memory (%2 are left beside the driver&apos;s context) and %3 of host memory (%4 are left beside LibTorch)</source>
        <translation>%1 显存（除驱动上下文外还剩 %2）和 %3 主机内存（除 LibTorch 外还剩 %4）</translation>
    </message>
    <message>
        <source>%1 of memory (%2 are left beside LibTorch)</source>
        <translation>%1 内存（除 LibTorch 外还剩 %2）</translation>
    </message>
    <message>
        <source>It needs %1; largest: %2</source>
        <translation>需要 %1；最大的部分：%2</translation>
    </message>
    <message>
        <source>%1 texts of %2 tokens in at most %3 micro-batches are more than any machine holds</source>
        <translation>%1 条各 %2 个词元的文本，最多分成 %3 个微批，任何机器都放不下</translation>
    </message>
    <message>
        <source>%1 texts of %2 tokens in micro-batches of %3 are more than any machine holds</source>
        <translation>%1 条各 %2 个词元的文本，每个微批 %3 条，任何机器都放不下</translation>
    </message>
    <message>
        <source>%1 of GPU memory hold no more than the driver&apos;s context (%2) and LibTorch&apos;s kernels (%3)</source>
        <translation>%1 显存只够放驱动上下文（%2）和 LibTorch 的计算内核（%3）</translation>
    </message>
    <message>
        <source>%1 and %2</source>
        <comment>amounts</comment>
        <translation>%1和%2</translation>
    </message>
    <message>
        <source>with %1 (a directory on an SSD, %2 free)</source>
        <translation>设置%1（SSD 上的目录，需要空闲 %2）</translation>
    </message>
    <message>
        <source>with at least %1</source>
        <translation>至少%1</translation>
    </message>
    <message>
        <source>with %1 and at least %2</source>
        <translation>设置%1，并且至少%2</translation>
    </message>
    <message>
        <source>without %1 and with %2</source>
        <translation>取消%1并设置%2</translation>
    </message>
    <message>
        <source>without %1</source>
        <translation>取消%1</translation>
    </message>
    <message>
        <source>with %1</source>
        <translation>设置%1</translation>
    </message>
    <message>
        <source>%1, or %2</source>
        <comment>ways</comment>
        <translation>%1；或者%2</translation>
    </message>
    <message>
        <source>Take a smaller model</source>
        <translation>请换用更小的模型</translation>
    </message>
    <message>
        <source>Close what else is on the GPU, or use the processor: %1</source>
        <translation>关闭 GPU 上的其他程序，或使用处理器：%1</translation>
    </message>
    <message>
        <source>It would fit %1, more than this machine can give; take a smaller model</source>
        <translation>以下条件下才放得下：%1，但超出本机所能提供的；请换用更小的模型</translation>
    </message>
    <message>
        <source>It fits %1; else only %2, more than this machine can give</source>
        <translation>以下条件下放得下：%1；否则只有：%2，但超出本机所能提供的</translation>
    </message>
    <message>
        <source>It fits %1</source>
        <translation>以下条件下放得下：%1</translation>
    </message>
</context>
<context>
    <name>RunDetails</name>
    <message>
        <source>Problem</source>
        <translation>问题</translation>
    </message>
    <message>
        <source>Ended</source>
        <translation>结束情况</translation>
    </message>
    <message>
        <source>All steps are done.</source>
        <translation>所有步均已完成。</translation>
    </message>
    <message>
        <source>Last checkpoint</source>
        <translation>最新检查点</translation>
    </message>
    <message>
        <source>none</source>
        <translation>无</translation>
    </message>
    <message>
        <source>Begun from</source>
        <translation>起始于</translation>
    </message>
    <message>
        <source>Process</source>
        <translation>进程</translation>
    </message>
    <message>
        <source>%1 on this machine</source>
        <translation>%1（本机）</translation>
    </message>
    <message>
        <source>%1 on %2</source>
        <translation>%1（%2）</translation>
    </message>
    <message>
        <source>Plan</source>
        <translation>方案</translation>
    </message>
    <message>
        <source>Directory</source>
        <translation>目录</translation>
    </message>
    <message numerus="yes">
        <source>%1 (%n are kept)</source>
        <translation>
            <numerusform>%1（保留 %n 个）</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>RunWords</name>
    <message>
        <source>Running</source>
        <translation>运行中</translation>
    </message>
    <message>
        <source>Paused</source>
        <translation>已暂停</translation>
    </message>
    <message>
        <source>Finished</source>
        <translation>已完成</translation>
    </message>
    <message>
        <source>Stopped</source>
        <translation>已停止</translation>
    </message>
    <message>
        <source>Failed or killed</source>
        <translation>失败或被终止</translation>
    </message>
    <message>
        <source>Unreadable</source>
        <translation>无法读取</translation>
    </message>
    <message>
        <source>Preparing</source>
        <translation>准备中</translation>
    </message>
    <message>
        <source>Training</source>
        <translation>训练中</translation>
    </message>
    <message>
        <source>Evaluating</source>
        <translation>评估中</translation>
    </message>
    <message>
        <source>Sampling</source>
        <translation>采样中</translation>
    </message>
    <message>
        <source>Saving</source>
        <translation>保存中</translation>
    </message>
    <message>
        <source>Failed</source>
        <translation>失败</translation>
    </message>
    <message>
        <source>Killed</source>
        <translation>被终止</translation>
    </message>
    <message>
        <source>Not begun</source>
        <translation>未开始</translation>
    </message>
    <message>
        <source>Waits for disk</source>
        <translation>等待磁盘空间</translation>
    </message>
    <message>
        <source>%1 s</source>
        <translation>%1 秒</translation>
    </message>
    <message>
        <source>%1 min %2 s</source>
        <translation>%1 分 %2 秒</translation>
    </message>
    <message>
        <source>%1 min</source>
        <translation>%1 分钟</translation>
    </message>
    <message>
        <source>%1 h %2 min</source>
        <translation>%1 小时 %2 分</translation>
    </message>
    <message>
        <source>%1 d %2 h</source>
        <translation>%1 天 %2 小时</translation>
    </message>
</context>
<context>
    <name>SampleDataWords</name>
    <message>
        <source>%1 articles of BBC News in %2 topics</source>
        <translation>%1 篇 BBC 新闻，%2 个主题</translation>
    </message>
    <message>
        <source>160 short messages to a shop, in 4 kinds</source>
        <translation>160 条发给商店的短消息，4 个类别</translation>
    </message>
    <message>
        <source>Romeo and Juliet, by William Shakespeare</source>
        <translation>《罗密欧与朱丽叶》，威廉·莎士比亚著</translation>
    </message>
</context>
<context>
    <name>SampleGrid</name>
    <message>
        <source>%1 cannot be read: %2</source>
        <translation>无法读取 %1：%2</translation>
    </message>
    <message>
        <source>%1 %2</source>
        <comment>setting and value</comment>
        <translation>%1 %2</translation>
    </message>
</context>
<context>
    <name>SettingsFileWords</name>
    <message>
        <source>“%1” cannot be written: %2</source>
        <translation>无法写入“%1”：%2</translation>
    </message>
</context>
<context>
    <name>StartWords</name>
    <message>
        <source>%1, %2 (%3 free)</source>
        <translation>%1，%2（可用 %3）</translation>
    </message>
    <message numerus="yes">
        <source>%1, %n core(s)</source>
        <translation>
            <numerusform>%1，%n 核</numerusform>
        </translation>
    </message>
    <message>
        <source>%1 free of %2</source>
        <translation>可用 %1，共 %2</translation>
    </message>
    <message>
        <source>%1 free</source>
        <translation>可用 %1</translation>
    </message>
    <message>
        <source>It does not fit this machine.</source>
        <translation>本机放不下。</translation>
    </message>
    <message>
        <source>The disk is too small: %1 are needed and %2 are free.</source>
        <translation>磁盘空间不足：需要 %1，可用 %2。</translation>
    </message>
    <message>
        <source>Choose another runs folder in Settings, or make room.</source>
        <translation>请在“设置”中选择其他运行文件夹，或腾出空间。</translation>
    </message>
    <message>
        <source>%1 of %2 memory</source>
        <translation>内存 %1（共 %2）</translation>
    </message>
    <message>
        <source>It just fits: %1 of %2 GPU memory, %3.</source>
        <translation>刚好放得下：显存 %1（共 %2），%3。</translation>
    </message>
    <message>
        <source>It fits: %1 of %2 GPU memory, %3.</source>
        <translation>放得下：显存 %1（共 %2），%3。</translation>
    </message>
    <message>
        <source>It just fits: %1.</source>
        <translation>刚好放得下：%1。</translation>
    </message>
    <message>
        <source>It fits: %1.</source>
        <translation>放得下：%1。</translation>
    </message>
    <message numerus="yes">
        <source>%n step(s)</source>
        <translation>
            <numerusform>%n 步</numerusform>
        </translation>
    </message>
    <message>
        <source>The number of steps is known once the data are read.</source>
        <translation>读取数据后才能知道步数。</translation>
    </message>
    <message>
        <source>%1, about %2.</source>
        <translation>%1，约 %2。</translation>
    </message>
    <message>
        <source>%1. The time to finish is shown after the first steps.</source>
        <translation>%1。完成前几步后会显示所需时间。</translation>
    </message>
    <message>
        <source>%1. %2.</source>
        <comment>why and help</comment>
        <translation>%1。%2。</translation>
    </message>
</context>
<context>
    <name>TextAnswerWords</name>
    <message>
        <source>%1 (%2)</source>
        <translation>%1（%2）</translation>
    </message>
    <message>
        <source>answer</source>
        <translation>答案</translation>
    </message>
    <message>
        <source>no answer</source>
        <translation>无答案</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <translation>%1：%2</translation>
    </message>
    <message>
        <source>no entities</source>
        <translation>无实体</translation>
    </message>
    <message>
        <source>no label is likely</source>
        <translation>没有可能性较高的标签</translation>
    </message>
</context>
<context>
    <name>TextWords</name>
    <message>
        <source>, </source>
        <comment>between the words of a list</comment>
        <translation>、</translation>
    </message>
</context>
<context>
    <name>ferry::gui::ActionBar</name>
    <message>
        <source>&amp;Pause</source>
        <translation>暂停(&amp;P)</translation>
    </message>
    <message>
        <source>Pauses the run and frees the GPU for other programs, a game for instance.</source>
        <translation>暂停运行，把 GPU 让给其他程序，例如游戏。</translation>
    </message>
    <message>
        <source>Sa&amp;ve now</source>
        <translation>立即保存(&amp;V)</translation>
    </message>
    <message>
        <source>S&amp;top and save</source>
        <translation>停止并保存(&amp;T)</translation>
    </message>
    <message>
        <source>Writes a checkpoint and ends the run. It can be resumed.</source>
        <translation>写入检查点并结束运行，之后可以恢复。</translation>
    </message>
    <message>
        <source>Stop &amp;without saving</source>
        <translation>不保存并停止(&amp;W)</translation>
    </message>
    <message>
        <source>Ends the run. What came after the last checkpoint is lost.</source>
        <translation>结束运行。最新检查点之后的进度将丢失。</translation>
    </message>
    <message>
        <source>&amp;Force quit</source>
        <translation>强制退出(&amp;F)</translation>
    </message>
    <message>
        <source>Kills the process of a run that does not stop. What came after the last checkpoint is lost.</source>
        <translation>终止无法停止的运行的进程。最新检查点之后的进度将丢失。</translation>
    </message>
    <message>
        <source>&amp;Stop</source>
        <translation>停止(&amp;S)</translation>
    </message>
    <message>
        <source>Stop the run</source>
        <translation>停止运行</translation>
    </message>
    <message>
        <source>%1 Not now: %2.</source>
        <translation>%1 当前不可用：%2。</translation>
    </message>
    <message>
        <source>%1 (%2)</source>
        <translation>%1（%2）</translation>
    </message>
    <message>
        <source>Ends the run: with a checkpoint, or without.</source>
        <translation>结束运行：可选择是否保存检查点。</translation>
    </message>
    <message>
        <source>Sam&amp;ple now</source>
        <translation>立即采样(&amp;P)</translation>
    </message>
    <message>
        <source>&amp;Resume</source>
        <translation>继续(&amp;R)</translation>
    </message>
    <message>
        <source>Continues the paused run where it was.</source>
        <translation>让暂停的运行从原处继续。</translation>
    </message>
    <message>
        <source>Writes a checkpoint now. The training continues.</source>
        <translation>立即写入检查点，训练继续进行。</translation>
    </message>
    <message>
        <source>Continues the run&apos;s prompts now. The training waits meanwhile.</source>
        <translation>立即续写该运行的提示，其间训练等待。</translation>
    </message>
    <message>
        <source>Starts a new process that continues from the last checkpoint.</source>
        <translation>启动新进程，从最后一个检查点继续。</translation>
    </message>
    <message>
        <source>a new process is being started</source>
        <translation>正在启动新进程</translation>
    </message>
</context>
<context>
    <name>ferry::gui::Chat</name>
    <message>
        <source>The model ended its answer at once.</source>
        <translation>模型立即结束了回答。</translation>
    </message>
    <message>
        <source>Cut here: the answer has as many tokens as were asked for.</source>
        <translation>在此截断：回答已达到所设的词元数。</translation>
    </message>
    <message numerus="yes">
        <source>The context had no room for the first %n question(s).</source>
        <translation>
            <numerusform>上下文容不下最前面的 %n 个问题。</numerusform>
        </translation>
    </message>
    <message>
        <source>Stopped.</source>
        <translation>已停止。</translation>
    </message>
</context>
<context>
    <name>ferry::gui::ChatPanel</name>
    <message>
        <source>none</source>
        <translation>无</translation>
    </message>
    <message>
        <source>Says before the first message how the model is to answer. A change counts from the next message on.</source>
        <translation>在第一条消息之前说明模型应如何回答。更改从下一条消息起生效。</translation>
    </message>
    <message>
        <source>S&amp;ystem prompt</source>
        <translation>系统提示(&amp;Y)</translation>
    </message>
    <message>
        <source>&amp;Length</source>
        <translation>长度(&amp;L)</translation>
    </message>
    <message>
        <source>&amp;Temperature</source>
        <translation>温度(&amp;T)</translation>
    </message>
    <message>
        <source>Top-&amp;p</source>
        <translation>Top-p(&amp;P)</translation>
    </message>
    <message>
        <source>&amp;Compare with the base model</source>
        <translation>与基础模型对比(&amp;C)</translation>
    </message>
    <message>
        <source>Messa&amp;ge</source>
        <translation>消息(&amp;G)</translation>
    </message>
    <message>
        <source>Message</source>
        <translation>消息</translation>
    </message>
    <message>
        <source>Enter sends it, Shift+Enter begins a new line.</source>
        <translation>回车键发送，上档键加回车键换行。</translation>
    </message>
    <message>
        <source>&amp;Send</source>
        <translation>发送(&amp;S)</translation>
    </message>
    <message>
        <source>St&amp;op</source>
        <translation>停止(&amp;O)</translation>
    </message>
    <message>
        <source>Ends the answers; what came of them stays.</source>
        <translation>结束回答；已有的内容保留。</translation>
    </message>
    <message>
        <source>A&amp;nother answer</source>
        <translation>换个回答(&amp;N)</translation>
    </message>
    <message>
        <source>Asks the last message again.</source>
        <translation>再次发送最后一条消息。</translation>
    </message>
    <message>
        <source>&amp;Begin anew</source>
        <translation>重新开始(&amp;B)</translation>
    </message>
    <message>
        <source>Forgets what was said.</source>
        <translation>清除对话内容。</translation>
    </message>
    <message>
        <source>Base: %1</source>
        <translation>基础模型：%1</translation>
    </message>
    <message>
        <source>%1 answers the same messages.</source>
        <translation>%1 回答同样的消息。</translation>
    </message>
    <message>
        <source>The model that this one was trained from is not known, or not on this machine.</source>
        <translation>不知道此模型由哪个模型训练而来，或者该模型不在本机上。</translation>
    </message>
    <message>
        <source>The model is being loaded...</source>
        <translation>正在加载模型...</translation>
    </message>
    <message>
        <source>The model answers...</source>
        <translation>模型正在回答...</translation>
    </message>
    <message>
        <source>Waits for the other model</source>
        <translation>等待另一个模型</translation>
    </message>
    <message>
        <source>Loaded</source>
        <translation>已加载</translation>
    </message>
    <message>
        <source>Loaded with the next message</source>
        <translation>随下一条消息加载</translation>
    </message>
    <message>
        <source>The chat with %1</source>
        <translation>与 %1 的对话</translation>
    </message>
    <message>
        <source>The memory holds one of the two: they answer one after the other.</source>
        <translation>内存只容得下其中一个：两者先后回答。</translation>
    </message>
</context>
<context>
    <name>ferry::gui::ChatServer</name>
    <message>
        <source>The model&apos;s process ended.</source>
        <translation>模型的进程已结束。</translation>
    </message>
    <message>
        <source>The model&apos;s answer is not understood.</source>
        <translation>无法理解模型的回答。</translation>
    </message>
    <message>
        <source>The answer broke off: %1</source>
        <translation>回答中断：%1</translation>
    </message>
</context>
<context>
    <name>ferry::gui::ComparePage</name>
    <message>
        <source>Training loss</source>
        <translation>训练损失</translation>
    </message>
    <message>
        <source>Evaluation loss</source>
        <translation>评估损失</translation>
    </message>
    <message>
        <source>Learning rate</source>
        <translation>学习率</translation>
    </message>
    <message>
        <source>Gradient norm</source>
        <translation>梯度范数</translation>
    </message>
    <message>
        <source>Tokens per second</source>
        <translation>每秒词元数</translation>
    </message>
    <message>
        <source>Time of a step</source>
        <translation>每步时间</translation>
    </message>
    <message>
        <source>Host memory</source>
        <translation>主机内存</translation>
    </message>
    <message>
        <source>GPU memory</source>
        <translation>显存</translation>
    </message>
    <message>
        <source>GPU busy</source>
        <translation>GPU 利用率</translation>
    </message>
    <message>
        <source>Overlap</source>
        <translation>重叠</translation>
    </message>
    <message>
        <source>Choose two to six runs to compare</source>
        <translation>选择两到六个运行进行对比</translation>
    </message>
    <message>
        <source>&amp;Compare</source>
        <translation>对比(&amp;C)</translation>
    </message>
    <message>
        <source>&amp;Back</source>
        <translation>返回(&amp;B)</translation>
    </message>
    <message>
        <source>Compare runs</source>
        <translation>对比运行</translation>
    </message>
    <message>
        <source>&amp;Add runs…</source>
        <translation>添加运行(&amp;A)…</translation>
    </message>
    <message>
        <source>&amp;Export the tables as CSV…</source>
        <translation>将表格导出为 CSV(&amp;E)…</translation>
    </message>
    <message>
        <source>A&amp;dd runs…</source>
        <translation>添加运行(&amp;D)…</translation>
    </message>
    <message>
        <source>&amp;Curve</source>
        <translation>曲线(&amp;C)</translation>
    </message>
    <message>
        <source>Curve to compare</source>
        <translation>要对比的曲线</translation>
    </message>
    <message>
        <source>&amp;Export…</source>
        <translation>导出(&amp;E)…</translation>
    </message>
    <message>
        <source>Writes results and settings as CSV. The chart&apos;s own menu exports the curves.</source>
        <translation>将结果和设置写入 CSV。曲线可通过图表自带的菜单导出。</translation>
    </message>
    <message>
        <source>Results</source>
        <translation>结果</translation>
    </message>
    <message>
        <source>&amp;Results</source>
        <translation>结果(&amp;R)</translation>
    </message>
    <message>
        <source>The runs have the same settings.</source>
        <translation>这些运行的设置相同。</translation>
    </message>
    <message>
        <source>Settings that differ</source>
        <translation>不同的设置</translation>
    </message>
    <message>
        <source>Se&amp;ttings that differ</source>
        <translation>不同的设置(&amp;T)</translation>
    </message>
    <message>
        <source>Export the comparison</source>
        <translation>导出对比</translation>
    </message>
    <message>
        <source>Add another run to compare it with.</source>
        <translation>再添加一个运行以进行对比。</translation>
    </message>
    <message>
        <source>Live</source>
        <translation>实时</translation>
    </message>
    <message>
        <source>Watch %1</source>
        <translation>查看 %1</translation>
    </message>
    <message>
        <source>Leave out %1</source>
        <translation>移除 %1</translation>
    </message>
    <message>
        <source>Leaves this run out</source>
        <translation>将此运行移出对比</translation>
    </message>
    <message numerus="yes">
        <source>At most %n runs are compared</source>
        <translation>
            <numerusform>最多对比 %n 个运行</numerusform>
        </translation>
    </message>
    <message>
        <source>Evaluation %1</source>
        <translation>评估：%1</translation>
    </message>
    <message>
        <source>Se&amp;ttings that differ (%1)</source>
        <translation>不同的设置（%1）(&amp;T)</translation>
    </message>
    <message>
        <source>Written: %1</source>
        <translation>已写入：%1</translation>
    </message>
    <message>
        <source>%1 cannot be written: %2</source>
        <translation>无法写入 %1：%2</translation>
    </message>
    <message>
        <source>GPU memory, peak</source>
        <translation>显存峰值</translation>
    </message>
</context>
<context>
    <name>ferry::gui::ComparisonTable</name>
    <message>
        <source>State</source>
        <translation>状态</translation>
    </message>
    <message>
        <source>Steps</source>
        <translation>步数</translation>
    </message>
    <message>
        <source>%1 of %2</source>
        <translation>%1（共 %2）</translation>
    </message>
    <message>
        <source>Last loss</source>
        <translation>最新损失</translation>
    </message>
    <message>
        <source>Evaluation loss</source>
        <translation>评估损失</translation>
    </message>
    <message>
        <source>Evaluation %1</source>
        <translation>评估：%1</translation>
    </message>
    <message>
        <source>Training time</source>
        <translation>训练时间</translation>
    </message>
    <message>
        <source>Speed</source>
        <translation>速度</translation>
    </message>
    <message>
        <source>%1 tokens/s</source>
        <translation>%1 词元/秒</translation>
    </message>
    <message>
        <source>Why it ended</source>
        <translation>结束原因</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <translation>%1：%2</translation>
    </message>
    <message>
        <source>%1, %2: %3</source>
        <translation>%1，%2：%3</translation>
    </message>
    <message>
        <source>none</source>
        <translation>无</translation>
    </message>
    <message>
        <source>Host memory, peak</source>
        <translation>主机内存峰值</translation>
    </message>
    <message>
        <source>GPU memory, peak</source>
        <translation>显存峰值</translation>
    </message>
</context>
<context>
    <name>ferry::gui::Curve</name>
    <message>
        <source>not finite</source>
        <translation>非有限值</translation>
    </message>
    <message>
        <source>%1 %</source>
        <translation>%1 %</translation>
    </message>
    <message>
        <source>%1/s</source>
        <translation>%1/秒</translation>
    </message>
    <message>
        <source>%1 ms</source>
        <translation>%1 ms</translation>
    </message>
    <message>
        <source>%1 s</source>
        <translation>%1 秒</translation>
    </message>
    <message>
        <source>%1: no values yet</source>
        <translation>%1：暂无数值</translation>
    </message>
    <message numerus="yes">
        <source>%1: %n points, last %2, falling</source>
        <translation>
            <numerusform>%1：%n 个点，最新值 %2，呈下降趋势</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1: %n points, last %2, rising</source>
        <translation>
            <numerusform>%1：%n 个点，最新值 %2，呈上升趋势</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1: %n points, last %2, steady</source>
        <translation>
            <numerusform>%1：%n 个点，最新值 %2，保持平稳</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1: %n points, last %2</source>
        <translation>
            <numerusform>%1：%n 个点，最新值 %2</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ferry::gui::CurveChart</name>
    <message>
        <source>Written: %1</source>
        <translation>已写入：%1</translation>
    </message>
    <message>
        <source>Axis, zoom, table, export</source>
        <translation>坐标轴、缩放、表格、导出</translation>
    </message>
    <message>
        <source>&amp;Logarithmic axis</source>
        <translation>对数坐标轴(&amp;L)</translation>
    </message>
    <message>
        <source>&amp;Clip to 99 % of the values</source>
        <translation>截取到 99 % 的值(&amp;C)</translation>
    </message>
    <message>
        <source>Show as &amp;table</source>
        <translation>显示为表格(&amp;T)</translation>
    </message>
    <message>
        <source>Zoom &amp;in</source>
        <translation>放大(&amp;I)</translation>
    </message>
    <message>
        <source>Zoom &amp;out</source>
        <translation>缩小(&amp;O)</translation>
    </message>
    <message>
        <source>&amp;Whole run</source>
        <translation>整个运行(&amp;W)</translation>
    </message>
    <message>
        <source>Export as &amp;PNG…</source>
        <translation>导出为 PNG(&amp;P)…</translation>
    </message>
    <message>
        <source>Export as &amp;SVG…</source>
        <translation>导出为 SVG(&amp;S)…</translation>
    </message>
    <message>
        <source>&amp;Export the values as CSV…</source>
        <translation>将数值导出为 CSV(&amp;E)…</translation>
    </message>
    <message>
        <source>%1, chart</source>
        <translation>%1，图表</translation>
    </message>
    <message>
        <source>%1: menu of the chart</source>
        <translation>%1：图表菜单</translation>
    </message>
    <message>
        <source>Values of zero and below have no place on a logarithmic axis.</source>
        <translation>零和负值无法显示在对数坐标轴上。</translation>
    </message>
    <message>
        <source>The axis ends at 99 % of the values; the greatest is %1.</source>
        <translation>坐标轴只到 99 % 的值；最大值为 %1。</translation>
    </message>
    <message>
        <source>No values yet</source>
        <translation>暂无数值</translation>
    </message>
    <message>
        <source>! Not finite: %1, the first at step %2.</source>
        <comment>a number of values</comment>
        <translation>! 非有限值：%1 个，首次出现在第 %2 步。</translation>
    </message>
    <message>
        <source>%1 %2</source>
        <comment>name and value of a curve</comment>
        <translation>%1 %2</translation>
    </message>
    <message>
        <source>Step %1</source>
        <translation>第 %1 步</translation>
    </message>
    <message>
        <source>%1 %2 (%3 to %4)</source>
        <comment>name, mean, least and greatest value</comment>
        <translation>%1 %2（%3 到 %4）</translation>
    </message>
    <message>
        <source>%1 %2 at step %3</source>
        <translation>%1 %2（第 %3 步）</translation>
    </message>
    <message>
        <source>Run of the table</source>
        <translation>表格中的运行</translation>
    </message>
    <message>
        <source>%1, table</source>
        <translation>%1，表格</translation>
    </message>
    <message>
        <source>%1 cannot be written: %2</source>
        <translation>无法写入 %1：%2</translation>
    </message>
    <message>
        <source>Export %1</source>
        <translation>导出%1</translation>
    </message>
    <message>
        <source>%1: no values yet</source>
        <translation>%1：暂无数值</translation>
    </message>
</context>
<context>
    <name>ferry::gui::DataPreview</name>
    <message>
        <source>Texts</source>
        <translation>文本</translation>
    </message>
    <message>
        <source>Lengths</source>
        <translation>长度</translation>
    </message>
    <message>
        <source>First batch</source>
        <translation>第一个批次</translation>
    </message>
    <message>
        <source>Counting the tokens of all texts…</source>
        <translation>正在统计所有文本的词元…</translation>
    </message>
    <message>
        <source>Reading the data…</source>
        <translation>正在读取数据…</translation>
    </message>
    <message>
        <source>Prev&amp;ious</source>
        <translation>上一条(&amp;I)</translation>
    </message>
    <message>
        <source>Ne&amp;xt</source>
        <translation>下一条(&amp;X)</translation>
    </message>
    <message>
        <source>The row as it was read</source>
        <translation>读取到的原始行</translation>
    </message>
    <message>
        <source>Field</source>
        <translation>字段</translation>
    </message>
    <message>
        <source>Value</source>
        <translation>值</translation>
    </message>
    <message>
        <source>The text that the model reads; underlined: trained on</source>
        <translation>模型读取的文本；下划线：参与训练</translation>
    </message>
    <message>
        <source>What the model reads of it</source>
        <translation>模型读取的内容</translation>
    </message>
    <message>
        <source>The tokens; underlined: trained on</source>
        <translation>词元；下划线：参与训练</translation>
    </message>
    <message>
        <source>Its tokens</source>
        <translation>其词元</translation>
    </message>
    <message>
        <source>Point at a bar, or use the arrow keys, to read it out.</source>
        <translation>指向条形或使用方向键可查看数值。</translation>
    </message>
    <message>
        <source>The samples of the first step</source>
        <translation>第一步的样本</translation>
    </message>
    <message>
        <source>Text</source>
        <translation>文本</translation>
    </message>
    <message>
        <source>Tokens</source>
        <translation>词元</translation>
    </message>
    <message>
        <source>Trained on</source>
        <translation>参与训练</translation>
    </message>
    <message>
        <source>Begins</source>
        <translation>开头</translation>
    </message>
    <message>
        <source>Task %1, at most %2 tokens a text.</source>
        <translation>任务 %1，每条文本最多 %2 个词元。</translation>
    </message>
    <message>
        <source>There is no text.</source>
        <translation>没有文本。</translation>
    </message>
    <message>
        <source>Text %1 of the first %2</source>
        <translation>前 %2 条文本中的第 %1 条</translation>
    </message>
    <message>
        <source>%1, part %2 of %3</source>
        <translation>%1，第 %2 部分，共 %3 部分</translation>
    </message>
    <message numerus="yes">
        <source>%n token(s).</source>
        <translation>
            <numerusform>%n 个词元。</numerusform>
        </translation>
    </message>
    <message>
        <source>⚠ Nothing of it is trained on.</source>
        <translation>⚠ 其中没有内容参与训练。</translation>
    </message>
    <message>
        <source>It is held out for evaluation.</source>
        <translation>留作评估。</translation>
    </message>
    <message>
        <source>All texts that are trained on: %1, %2 tokens on average, at most %3.</source>
        <translation>参与训练的全部文本：%1 条，平均 %2 个词元，最多 %3 个。</translation>
    </message>
    <message>
        <source>The first texts: %1, %2 tokens on average, at most %3.</source>
        <translation>前几条文本：%1 条，平均 %2 个词元，最多 %3 个。</translation>
    </message>
    <message>
        <source>⚠ %1</source>
        <translation>⚠ %1</translation>
    </message>
    <message>
        <source>It is known once all texts are counted.</source>
        <translation>统计完所有文本后才能得知。</translation>
    </message>
    <message numerus="yes">
        <source>The first step: %n sample(s),</source>
        <translation>
            <numerusform>第一步：%n 个样本，</numerusform>
        </translation>
    </message>
    <message>
        <source>The first ones are shown.</source>
        <translation>仅显示最前面的样本。</translation>
    </message>
    <message>
        <source>the label</source>
        <translation>标签</translation>
    </message>
    <message>
        <source>Labels</source>
        <translation>标签</translation>
    </message>
    <message>
        <source>Label</source>
        <translation>标签</translation>
    </message>
    <message>
        <source>How many texts have each label</source>
        <translation>每个标签有多少文本</translation>
    </message>
    <message>
        <source>Texts, or words</source>
        <translation>文本数或词数</translation>
    </message>
    <message>
        <source>Label: %1.</source>
        <translation>标签：%1。</translation>
    </message>
    <message numerus="yes">
        <source>%n of them are trained on (underlined).</source>
        <translation>
            <numerusform>其中 %n 个参与训练（带下划线）。</numerusform>
        </translation>
    </message>
    <message>
        <source>⚠ It is cut to the longest text allowed.</source>
        <translation>⚠ 它被截断到允许的最大长度。</translation>
    </message>
    <message>
        <source>Cut to the longest text allowed: %1 (%2 %).</source>
        <translation>截断到允许的最大长度：%1（%2 %）。</translation>
    </message>
    <message>
        <source>Texts with nothing to learn: %1 (%2 %).</source>
        <translation>没有可学内容的文本：%1（%2 %）。</translation>
    </message>
    <message>
        <source>They are counted once all texts are read.</source>
        <translation>读完所有文本后才会统计。</translation>
    </message>
    <message>
        <source>%1 (%2 %)</source>
        <translation>%1（%2 %）</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <comment>label and count</comment>
        <translation>%1：%2</translation>
    </message>
    <message numerus="yes">
        <source>%n of them are trained on.</source>
        <translation>
            <numerusform>其中 %n 个参与训练。</numerusform>
        </translation>
    </message>
    <message>
        <source>none</source>
        <translation>无</translation>
    </message>
    <message>
        <source>Before they are cut the longest has %1 tokens or more, which is all that the model takes.</source>
        <translation>截断前最长的文本有 %1 个或更多词元，这已是模型的上限。</translation>
    </message>
    <message>
        <source>Before they are cut the longest has %1 tokens.</source>
        <translation>截断前最长的文本有 %1 个词元。</translation>
    </message>
    <message>
        <source>“%1” that holds 95 % of them whole: %2; 99 %: %3; all: %4.</source>
        <translation>能完整容纳其中 95 % 的“%1”：%2；99 %：%3；全部：%4。</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <translation>%1：%2</translation>
    </message>
    <message>
        <source>%1: %2.</source>
        <translation>%1：%2。</translation>
    </message>
    <message>
        <source>assistant</source>
        <translation>助手</translation>
    </message>
    <message>
        <source>assistant, not trained on</source>
        <translation>助手，不参与训练</translation>
    </message>
    <message>
        <source>user</source>
        <translation>用户</translation>
    </message>
    <message>
        <source>system</source>
        <translation>系统</translation>
    </message>
    <message>
        <source>tool</source>
        <translation>工具</translation>
    </message>
    <message>
        <source>tools</source>
        <translation>工具定义</translation>
    </message>
</context>
<context>
    <name>ferry::gui::DoctorPage</name>
    <message>
        <source>Error</source>
        <translation>错误</translation>
    </message>
    <message>
        <source>Warning</source>
        <translation>警告</translation>
    </message>
    <message>
        <source>Note</source>
        <translation>提示</translation>
    </message>
    <message>
        <source>&amp;Look again</source>
        <translation>重新检查(&amp;L)</translation>
    </message>
    <message>
        <source>&amp;Copy report</source>
        <translation>复制报告(&amp;C)</translation>
    </message>
    <message>
        <source>&amp;Measure now</source>
        <translation>立即测量(&amp;M)</translation>
    </message>
    <message>
        <source>What it has</source>
        <translation>本机配置</translation>
    </message>
    <message>
        <source>Takes some %1 seconds and needs the GPU for itself. Plans tell time with the figures.</source>
        <translation>约需 %1 秒，期间独占 GPU。方案根据测得的数据估算时间。</translation>
    </message>
    <message>
        <source>Canc&amp;el</source>
        <translation>取消(&amp;E)</translation>
    </message>
    <message>
        <source>Measuring</source>
        <translation>正在测量</translation>
    </message>
    <message>
        <source>How fast it is</source>
        <translation>本机速度</translation>
    </message>
    <message>
        <source>Models that are here</source>
        <translation>本机模型</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>名称</translation>
    </message>
    <message>
        <source>Family</source>
        <translation>系列</translation>
    </message>
    <message>
        <source>Found in</source>
        <translation>来源</translation>
    </message>
    <message>
        <source>Directory</source>
        <translation>目录</translation>
    </message>
    <message>
        <source>Looking at this machine…</source>
        <translation>正在检查本机…</translation>
    </message>
    <message>
        <source>Ferry cannot train here until the errors are mended</source>
        <translation>修正错误之前，Ferry 无法在本机训练</translation>
    </message>
    <message>
        <source>Ferry can train here</source>
        <translation>Ferry 可以在本机训练</translation>
    </message>
    <message>
        <source>Ferry can train here; something could be better</source>
        <translation>Ferry 可以在本机训练；有些地方还可以改进</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <translation>%1：%2</translation>
    </message>
    <message>
        <source>%1, of: %2</source>
        <translation>%1，针对：%2</translation>
    </message>
    <message>
        <source>Measure now</source>
        <translation>立即测量</translation>
    </message>
    <message>
        <source>Choose another directory</source>
        <translation>选择其他目录</translation>
    </message>
    <message>
        <source>Copied.</source>
        <translation>已复制。</translation>
    </message>
    <message>
        <source>Not measured yet: plans cannot tell how long a run takes.</source>
        <translation>尚未测量：方案无法估算运行所需的时间。</translation>
    </message>
    <message>
        <source>%1: %2.</source>
        <translation>%1：%2。</translation>
    </message>
    <message>
        <source>Left out: %1.</source>
        <translation>已略过：%1。</translation>
    </message>
    <message>
        <source>unreadable</source>
        <translation>无法读取</translation>
    </message>
    <message>
        <source>%1 s of about %2 s</source>
        <translation>%1 秒，共约 %2 秒</translation>
    </message>
    <message>
        <source>The report is copied.</source>
        <translation>报告已复制。</translation>
    </message>
    <message>
        <source>None. Download one on the Start page, or set FERRY_MODELS to a directory of models.</source>
        <translation>没有。可在“开始”页下载一个，或将 FERRY_MODELS 设为存放模型的目录。</translation>
    </message>
    <message>
        <source>Command: %1</source>
        <translation>命令：%1</translation>
    </message>
    <message>
        <source>Copy command</source>
        <translation>复制命令</translation>
    </message>
</context>
<context>
    <name>ferry::gui::DoctorThread</name>
    <message>
        <source>GPU</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>%1, %2 free of %3, sm_%4, drives the display</source>
        <translation>%1，可用 %2，共 %3，sm_%4，用于显示输出</translation>
    </message>
    <message>
        <source>%1, %2 free of %3, sm_%4</source>
        <translation>%1，可用 %2，共 %3，sm_%4</translation>
    </message>
    <message>
        <source>none</source>
        <translation>无</translation>
    </message>
    <message>
        <source>NVIDIA driver</source>
        <translation>NVIDIA 驱动</translation>
    </message>
    <message>
        <source>%1, CUDA %2.%3</source>
        <translation>%1，CUDA %2.%3</translation>
    </message>
    <message>
        <source>Processor</source>
        <translation>处理器</translation>
    </message>
    <message>
        <source>%1, %2 cores, %3 threads</source>
        <translation>%1，%2 核，%3 线程</translation>
    </message>
    <message>
        <source>CPU kernels</source>
        <translation>CPU 计算内核</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>内存</translation>
    </message>
    <message>
        <source>%1 available of %2; a run may take %3</source>
        <translation>可用 %1，共 %2；一个运行可占用 %3</translation>
    </message>
    <message>
        <source>Memory limits</source>
        <translation>内存限制</translation>
    </message>
    <message>
        <source>control group %1, locked memory %2</source>
        <translation>控制组 %1，锁定内存 %2</translation>
    </message>
    <message>
        <source>Swap</source>
        <translation>交换空间</translation>
    </message>
    <message>
        <source>%1 free of %2</source>
        <translation>可用 %1，共 %2</translation>
    </message>
    <message>
        <source>Disk here</source>
        <translation>此处磁盘</translation>
    </message>
    <message>
        <source>System</source>
        <translation>系统</translation>
    </message>
    <message>
        <source>%1, Linux %2 (WSL)</source>
        <translation>%1，Linux %2 (WSL)</translation>
    </message>
    <message>
        <source>%1, Linux %2</source>
        <translation>%1，Linux %2</translation>
    </message>
    <message>
        <source>Trainer</source>
        <translation>训练程序</translation>
    </message>
    <message>
        <source>not found</source>
        <translation>未找到</translation>
    </message>
    <message>
        <source>Presets</source>
        <translation>预设</translation>
    </message>
    <message>
        <source>Products, GPU</source>
        <translation>矩阵乘法，GPU</translation>
    </message>
    <message>
        <source>Copies</source>
        <translation>数据传输</translation>
    </message>
    <message>
        <source>%1 GB/s to the GPU, %2 back; at once %3 and %4</source>
        <translation>到 GPU %1 GB/s，返回 %2；同时进行时 %3 和 %4</translation>
    </message>
    <message>
        <source>GPU memory</source>
        <translation>显存</translation>
    </message>
    <message>
        <source>%1 GB/s; a launch takes %2 µs</source>
        <translation>%1 GB/s；启动一次内核耗时 %2 µs</translation>
    </message>
    <message>
        <source>AdamW</source>
        <translation>AdamW</translation>
    </message>
    <message>
        <source>%1 M parameters/s with %2 threads</source>
        <translation>%1 M 参数/秒，%2 线程</translation>
    </message>
    <message>
        <source>Host memory</source>
        <translation>主机内存</translation>
    </message>
    <message>
        <source>%1 GB/s; AdamW moves %2</source>
        <translation>%1 GB/s；AdamW 达到 %2</translation>
    </message>
    <message>
        <source>Products, CPU</source>
        <translation>矩阵乘法，CPU</translation>
    </message>
    <message>
        <source>Disk</source>
        <translation>磁盘</translation>
    </message>
    <message>
        <source>writes %1 GB/s, reads %2</source>
        <translation>写入 %1 GB/s，读取 %2</translation>
    </message>
    <message>
        <source>NVMe</source>
        <translation>NVMe</translation>
    </message>
    <message>
        <source>reads %1 GB/s, writes %2; at once %3 each way</source>
        <translation>读取 %1 GB/s，写入 %2；同时读写时各 %3</translation>
    </message>
    <message>
        <source>%1, %2 of them fit this machine</source>
        <translation>%1 个，其中 %2 个适合本机</translation>
    </message>
</context>
<context>
    <name>ferry::gui::DriveFields</name>
    <message>
        <source>Folders on NVMe drives that Ferry may use</source>
        <translation>Ferry 可以使用的 NVMe 硬盘上的文件夹</translation>
    </message>
    <message>
        <source>none: a folder on an NVMe drive holds what memory does not</source>
        <translation>无：NVMe 硬盘上的文件夹可存放内存放不下的内容</translation>
    </message>
    <message>
        <source>Browse...</source>
        <translation>浏览...</translation>
    </message>
    <message>
        <source>Space on the drives that Ferry may take</source>
        <translation>Ferry 可以占用的硬盘空间</translation>
    </message>
    <message>
        <source>auto</source>
        <translation>自动</translation>
    </message>
    <message>
        <source>Space on the drives: as much as is free</source>
        <translation>硬盘空间：使用全部可用空间</translation>
    </message>
    <message>
        <source>As much as is free, but a margin</source>
        <translation>使用全部可用量，并留出余量</translation>
    </message>
    <message>
        <source>Folder on an NVMe drive</source>
        <translation>NVMe 硬盘上的文件夹</translation>
    </message>
    <message>
        <source>auto: %1</source>
        <translation>自动：%1</translation>
    </message>
</context>
<context>
    <name>ferry::gui::ErrorLabel</name>
    <message>
        <source>Error: %1</source>
        <translation>错误：%1</translation>
    </message>
</context>
<context>
    <name>ferry::gui::ExportPage</name>
    <message>
        <source>Export</source>
        <translation>导出</translation>
    </message>
    <message>
        <source>Export the model</source>
        <translation>导出模型</translation>
    </message>
    <message>
        <source>Verify the run</source>
        <translation>校验运行</translation>
    </message>
    <message>
        <source>Folder to write to</source>
        <translation>要写入的文件夹</translation>
    </message>
    <message>
        <source>A folder that is new, or empty</source>
        <translation>新文件夹或空文件夹</translation>
    </message>
    <message>
        <source>Write &amp;to</source>
        <translation>写入到(&amp;T)</translation>
    </message>
    <message>
        <source>&amp;Browse...</source>
        <translation>浏览(&amp;B)...</translation>
    </message>
    <message>
        <source>&amp;Export</source>
        <translation>导出(&amp;E)</translation>
    </message>
    <message>
        <source>Ver&amp;ify run</source>
        <translation>校验运行(&amp;I)</translation>
    </message>
    <message>
        <source>Reads the run&apos;s checkpoints and compares their checksums with those that were kept.</source>
        <translation>读取该运行的检查点，并与保存的校验和进行比较。</translation>
    </message>
    <message>
        <source>&amp;Cancel</source>
        <translation>取消(&amp;C)</translation>
    </message>
    <message>
        <source>How much is written</source>
        <translation>已写入多少</translation>
    </message>
    <message>
        <source>&amp;Open folder</source>
        <translation>打开文件夹(&amp;O)</translation>
    </message>
    <message>
        <source>Tr&amp;y it</source>
        <translation>试用(&amp;Y)</translation>
    </message>
    <message>
        <source>What is written</source>
        <translation>写入的内容</translation>
    </message>
    <message>
        <source>Files that are written</source>
        <translation>写入的文件</translation>
    </message>
    <message>
        <source>File</source>
        <translation>文件</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>大小</translation>
    </message>
    <message>
        <source>How transformers loads it</source>
        <translation>如何用 transformers 加载</translation>
    </message>
    <message>
        <source>Python that loads the model</source>
        <translation>加载该模型的 Python 代码</translation>
    </message>
    <message>
        <source>marks words</source>
        <translation>词语标注</translation>
    </message>
    <message>
        <source>answers questions</source>
        <translation>问答</translation>
    </message>
    <message>
        <source>fills masked words</source>
        <translation>填充掩码词</translation>
    </message>
    <message>
        <source>A %1 model that %2.</source>
        <translation>用于%2的 %1 模型。</translation>
    </message>
    <message>
        <source>A %1 model that %2: %3.</source>
        <translation>用于%2的 %1 模型：%3。</translation>
    </message>
    <message>
        <source>Choose another folder to export it again.</source>
        <translation>如需再次导出，请选择其他文件夹。</translation>
    </message>
    <message>
        <source>Choose a run or a model above.</source>
        <translation>请在上方选择运行或模型。</translation>
    </message>
    <message>
        <source>Looking...</source>
        <translation>正在查看...</translation>
    </message>
    <message>
        <source>%1 will be written.</source>
        <translation>将写入 %1。</translation>
    </message>
    <message>
        <source>%1 will be written; %2 are free there.</source>
        <translation>将写入 %1；该处可用 %2。</translation>
    </message>
    <message>
        <source>Folder in which the model gets a new one</source>
        <translation>新模型文件夹所在的位置</translation>
    </message>
    <message>
        <source>Writes and reads back...</source>
        <translation>正在写入并读回校验...</translation>
    </message>
    <message>
        <source>Reads the checkpoints...</source>
        <translation>正在读取检查点...</translation>
    </message>
    <message>
        <source>%1 of %2</source>
        <translation>%1（共 %2）</translation>
    </message>
    <message>
        <source>The export was cancelled. Nothing of it is left.</source>
        <translation>导出已取消，没有留下任何内容。</translation>
    </message>
    <message>
        <source>The check was cancelled.</source>
        <translation>校验已取消。</translation>
    </message>
    <message>
        <source>The checksums are as they were kept.</source>
        <translation>校验和与保存的一致。</translation>
    </message>
    <message>
        <source>The model is exported</source>
        <translation>模型已导出</translation>
    </message>
    <message numerus="yes">
        <source>%1
%2 in %n file(s). Each tensor was read back and is the same as in the run.</source>
        <translation>
            <numerusform>%1
%2，共 %n 个文件。每个张量都已读回，与运行中的一致。</numerusform>
        </translation>
    </message>
    <message>
        <source>classifies texts</source>
        <translation>对文本分类</translation>
    </message>
    <message>
        <source>continues texts</source>
        <translation>续写文本</translation>
    </message>
    <message>
        <source>default %1</source>
        <translation>默认 %1</translation>
    </message>
    <message>
        <source>Writes a trained model as a Hugging Face folder for transformers, or as one GGUF file for llama.cpp. An adapter is merged into its model. The run stays as it is.</source>
        <translation>将训练好的模型写成供 transformers 使用的 Hugging Face 文件夹，或供 llama.cpp 使用的单个 GGUF 文件。适配器会合并到其模型中。运行本身保持不变。</translation>
    </message>
    <message>
        <source>&amp;Write as</source>
        <translation>写入为(&amp;W)</translation>
    </message>
    <message>
        <source>Hugging Face folder</source>
        <translation>Hugging Face 文件夹</translation>
    </message>
    <message>
        <source>GGUF file</source>
        <translation>GGUF 文件</translation>
    </message>
    <message>
        <source>File to write</source>
        <translation>要写入的文件</translation>
    </message>
    <message>
        <source>A new file whose name ends in .gguf</source>
        <translation>名称以 .gguf 结尾的新文件</translation>
    </message>
    <message>
        <source>How llama.cpp and Ollama load it</source>
        <translation>如何用 llama.cpp 和 Ollama 加载</translation>
    </message>
    <message>
        <source>Commands that load the model</source>
        <translation>加载该模型的命令</translation>
    </message>
    <message>
        <source>Choose another file to export it again.</source>
        <translation>如需再次导出，请选择其他文件。</translation>
    </message>
    <message>
        <source>GGUF file to write</source>
        <translation>要写入的 GGUF 文件</translation>
    </message>
    <message>
        <source>GGUF files (*.gguf)</source>
        <translation>GGUF 文件 (*.gguf)</translation>
    </message>
    <message>
        <source>Reads it back...</source>
        <translation>正在读回校验...</translation>
    </message>
    <message>
        <source>%1
%2. Each value was read back and is the model&apos;s, rounded to the type of the file.</source>
        <translation>%1
%2。每个数值都已读回校验，与模型一致，仅按文件的类型舍入。</translation>
    </message>
</context>
<context>
    <name>ferry::gui::FerryProcess</name>
    <message>
        <source>The program ferry is not beside this one. Set FERRY to its path.</source>
        <translation>程序 ferry 不在本程序所在的目录中。请将 FERRY 设为它的路径。</translation>
    </message>
    <message>
        <source>%1 cannot be started: %2</source>
        <translation>无法启动 %1：%2</translation>
    </message>
    <message>
        <source>ferry answered with something that is not JSON: %1</source>
        <translation>ferry 的回应不是 JSON：%1</translation>
    </message>
    <message>
        <source>ferry answered with a line that does not end.</source>
        <translation>ferry 回应的一行没有结束。</translation>
    </message>
    <message>
        <source>The system ended it (signal 9), most likely for want of memory.</source>
        <translation>系统结束了它（信号 9），很可能是内存不足。</translation>
    </message>
    <message>
        <source>It ended unexpectedly (signal %1).</source>
        <translation>它意外结束（信号 %1）。</translation>
    </message>
    <message>
        <source>It ended with exit code %1 and said nothing.</source>
        <translation>它以退出码 %1 结束，没有任何输出。</translation>
    </message>
    <message>
        <source>ferry ended within a line of its answer.</source>
        <translation>ferry 在回应的一行还没写完时就结束了。</translation>
    </message>
</context>
<context>
    <name>ferry::gui::GpuLoad</name>
    <message>
        <source>%1 % busy</source>
        <translation>占用 %1 %</translation>
    </message>
    <message>
        <source>%1 of %2 used</source>
        <translation>已用 %1（共 %2）</translation>
    </message>
    <message>
        <source>%1 W</source>
        <translation>%1 W</translation>
    </message>
    <message>
        <source>%1 °C</source>
        <translation>%1 °C</translation>
    </message>
    <message>
        <source>, </source>
        <translation>，</translation>
    </message>
</context>
<context>
    <name>ferry::gui::HostLoad</name>
    <message>
        <source>CPU %1 %</source>
        <translation>CPU %1 %</translation>
    </message>
    <message>
        <source>memory %1 of %2</source>
        <translation>内存 %1 / %2</translation>
    </message>
</context>
<context>
    <name>ferry::gui::HubBox</name>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>重试</translation>
    </message>
    <message>
        <source>Look on the hub</source>
        <translation>在 Hub 上查找</translation>
    </message>
    <message>
        <source>Download</source>
        <translation>下载</translation>
    </message>
    <message>
        <source>%1 is not on this machine. Ferry can bring it from the Hugging Face hub.</source>
        <translation>本机没有 %1。Ferry 可以从 Hugging Face Hub 下载。</translation>
    </message>
    <message>
        <source>Asking the hub for %1...</source>
        <translation>正在向 Hub 查询 %1……</translation>
    </message>
    <message>
        <source>Downloading %1: %2 of %3</source>
        <translation>正在下载 %1：%2（共 %3）</translation>
    </message>
    <message>
        <source>Downloading %1...</source>
        <translation>正在下载 %1……</translation>
    </message>
    <message>
        <source>%1 is on this machine now.</source>
        <translation>%1 已在本机。</translation>
    </message>
    <message>
        <source>%1 did not come.</source>
        <translation>%1 未能下载。</translation>
    </message>
</context>
<context>
    <name>ferry::gui::InlineBar</name>
    <message>
        <source>Steps</source>
        <translation>步数</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
</context>
<context>
    <name>ferry::gui::Launcher</name>
    <message>
        <source>The program ferry is not beside this app. Install both together.</source>
        <translation>程序 ferry 不在本应用所在的目录中。请将两者安装在一起。</translation>
    </message>
    <message>
        <source>The program cannot be started: %1</source>
        <translation>无法启动程序：%1</translation>
    </message>
    <message>
        <source>It ended without a message.</source>
        <translation>它结束了，没有给出任何消息。</translation>
    </message>
    <message>
        <source>choosing the plan: a step of each is timed (%1 of at most %2)</source>
        <translation>正在选择方案：逐个试测一步的用时（第 %1 个，最多 %2 个）</translation>
    </message>
</context>
<context>
    <name>ferry::gui::LengthChart</name>
    <message>
        <source>Texts by their number of tokens</source>
        <translation>按词元数统计的文本</translation>
    </message>
    <message>
        <source>no texts</source>
        <translation>没有文本</translation>
    </message>
    <message>
        <source>%1 texts, the longest of %2 tokens; most of them, %3, of %4 to %5</source>
        <translation>%1 条文本，最长 %2 个词元；大多数（%3 条）为 %4 到 %5 个</translation>
    </message>
    <message>
        <source>%1 to %2 tokens: %3 texts, %4 %</source>
        <translation>%1 到 %2 个词元：%3 条文本，%4 %</translation>
    </message>
    <message>
        <source>tokens</source>
        <translation>词元</translation>
    </message>
    <message>
        <source>cut at %1</source>
        <translation>在 %1 处截断</translation>
    </message>
</context>
<context>
    <name>ferry::gui::LiveCharts</name>
    <message>
        <source>Charts of the run</source>
        <translation>运行的图表</translation>
    </message>
    <message>
        <source>Loss</source>
        <translation>损失</translation>
    </message>
    <message>
        <source>training</source>
        <translation>训练</translation>
    </message>
    <message>
        <source>evaluation</source>
        <translation>评估</translation>
    </message>
    <message>
        <source>Learning rate</source>
        <translation>学习率</translation>
    </message>
    <message>
        <source>learning rate</source>
        <translation>学习率</translation>
    </message>
    <message>
        <source>Gradient norm</source>
        <translation>梯度范数</translation>
    </message>
    <message>
        <source>gradient norm</source>
        <translation>梯度范数</translation>
    </message>
    <message>
        <source>Speed</source>
        <translation>速度</translation>
    </message>
    <message>
        <source>tokens</source>
        <translation>词元</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>内存</translation>
    </message>
    <message>
        <source>host</source>
        <translation>主机</translation>
    </message>
    <message>
        <source>host, pinned</source>
        <translation>主机（锁页）</translation>
    </message>
    <message>
        <source>GPU</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>NVMe</source>
        <translation>NVMe</translation>
    </message>
    <message>
        <source>Overlap</source>
        <translation>重叠</translation>
    </message>
    <message>
        <source>GPU busy</source>
        <translation>GPU 利用率</translation>
    </message>
    <message>
        <source>transfers hidden</source>
        <translation>被掩盖的传输</translation>
    </message>
    <message>
        <source>Time of a step</source>
        <translation>每步时间</translation>
    </message>
    <message>
        <source>step</source>
        <translation>每步</translation>
    </message>
    <message>
        <source>update on the CPU</source>
        <translation>CPU 上的更新</translation>
    </message>
    <message>
        <source>Transfers of a step</source>
        <translation>每步传输量</translation>
    </message>
    <message>
        <source>to the GPU</source>
        <translation>到 GPU</translation>
    </message>
    <message>
        <source>from the GPU</source>
        <translation>从 GPU</translation>
    </message>
    <message>
        <source>read from NVMe</source>
        <translation>从 NVMe 读取</translation>
    </message>
    <message>
        <source>written to NVMe</source>
        <translation>写入 NVMe</translation>
    </message>
    <message>
        <source>Loss scale</source>
        <translation>损失缩放</translation>
    </message>
    <message>
        <source>loss scale</source>
        <translation>损失缩放</translation>
    </message>
    <message>
        <source>Evaluation</source>
        <translation>评估</translation>
    </message>
    <message>
        <source>Evaluation: %1</source>
        <translation>评估：%1</translation>
    </message>
    <message>
        <source>GPU, peak</source>
        <translation>显存峰值</translation>
    </message>
</context>
<context>
    <name>ferry::gui::LivePage</name>
    <message>
        <source>Choose a run to watch</source>
        <translation>选择要查看的运行</translation>
    </message>
    <message>
        <source>&amp;Watch</source>
        <translation>查看(&amp;W)</translation>
    </message>
    <message>
        <source>&amp;New run</source>
        <translation>新建运行(&amp;N)</translation>
    </message>
    <message>
        <source>GPU %1: %2</source>
        <translation>GPU %1：%2</translation>
    </message>
    <message>
        <source>GPU: %1</source>
        <translation>GPU：%1</translation>
    </message>
    <message>
        <source>Tr&amp;y it</source>
        <translation>试用(&amp;Y)</translation>
    </message>
    <message>
        <source>Asks the trained model about a text</source>
        <translation>用一段文本向训练好的模型提问</translation>
    </message>
    <message>
        <source>&amp;Export</source>
        <translation>导出(&amp;E)</translation>
    </message>
    <message>
        <source>Writes the trained model for other programs</source>
        <translation>写出训练好的模型，供其他程序使用</translation>
    </message>
    <message>
        <source>&amp;Charts</source>
        <translation>图表(&amp;C)</translation>
    </message>
    <message>
        <source>Chooses which charts are shown</source>
        <translation>选择要显示的图表</translation>
    </message>
    <message>
        <source>&amp;Watch another run…</source>
        <translation>查看其他运行(&amp;W)…</translation>
    </message>
    <message>
        <source>&amp;Open the run&apos;s folder</source>
        <translation>打开运行的文件夹(&amp;O)</translation>
    </message>
    <message>
        <source>! %1</source>
        <translation>! %1</translation>
    </message>
    <message>
        <source>Nothing was asked of the run</source>
        <translation>未向运行发出请求</translation>
    </message>
    <message>
        <source>Answer of the run: %1</source>
        <translation>运行的回应：%1</translation>
    </message>
    <message>
        <source>on %1</source>
        <translation>位于 %1</translation>
    </message>
    <message>
        <source>It could not be started: %1</source>
        <translation>无法启动：%1</translation>
    </message>
    <message>
        <source>The directory of this run is no longer there. What was read of it stays here until you choose another run.</source>
        <translation>此运行的目录已不存在。已读取的内容会保留在这里，直到您选择其他运行。</translation>
    </message>
    <message>
        <source>It starts. Its first lines come in a moment.</source>
        <translation>正在启动，很快会有第一批输出。</translation>
    </message>
    <message>
        <source>It was asked to stop a minute ago and neither saves nor ends. Force quit kills its process; what came after the last checkpoint is lost.</source>
        <translation>一分钟前已要求它停止，但它既不保存也不结束。强制退出会终止其进程；最新检查点之后的进度将丢失。</translation>
    </message>
    <message>
        <source>Finished: trained for %1. The model is ready to try and to export.</source>
        <translation>已完成：训练用时 %1。模型可以试用和导出了。</translation>
    </message>
    <message>
        <source>Finished. The model is ready to try and to export.</source>
        <translation>已完成。模型可以试用和导出了。</translation>
    </message>
    <message>
        <source>Asked; the run answers after its step.</source>
        <translation>已发出请求；运行会在当前步结束后回应。</translation>
    </message>
    <message>
        <source>a new process is being started</source>
        <translation>正在启动新进程</translation>
    </message>
    <message>
        <source>Paused: the GPU is free for other programs, a game for instance. Resume continues the run where it was.</source>
        <translation>已暂停：GPU 可供其他程序（例如游戏）使用。选择“继续”即可从原处接着运行。</translation>
    </message>
    <message>
        <source>Paused: the processor is free for other programs. The run keeps its memory, and Resume continues it where it was.</source>
        <translation>已暂停：处理器可供其他程序使用。该运行保留其内存，选择“继续”即可从原处接着运行。</translation>
    </message>
    <message>
        <source>Paused: %1. It is resumed by itself, or when you choose Resume.</source>
        <translation>已暂停：%1。它会自动继续，也可选择“继续”。</translation>
    </message>
    <message>
        <source>It waits for room on the disk: all steps are done, and its end does not fit. Make room, and it finishes by itself.</source>
        <translation>正在等待磁盘空间：所有步骤已完成，但结果放不下。腾出空间后会自动完成。</translation>
    </message>
</context>
<context>
    <name>ferry::gui::LogPane</name>
    <message>
        <source>C&amp;ommand</source>
        <translation>命令(&amp;O)</translation>
    </message>
    <message>
        <source>Command line of the run</source>
        <translation>运行的命令行</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>复制</translation>
    </message>
    <message>
        <source>Copy the command line</source>
        <translation>复制命令行</translation>
    </message>
    <message>
        <source>Copies the command line</source>
        <translation>复制命令行</translation>
    </message>
    <message>
        <source>Find</source>
        <translation>查找</translation>
    </message>
    <message>
        <source>To the end</source>
        <translation>转到末尾</translation>
    </message>
    <message>
        <source>Shows the newest lines and follows them</source>
        <translation>显示最新的行并持续跟随</translation>
    </message>
    <message>
        <source>Log of the run</source>
        <translation>运行日志</translation>
    </message>
    <message>
        <source>Find in the log</source>
        <translation>在日志中查找</translation>
    </message>
    <message>
        <source>Text to find in the log</source>
        <translation>要在日志中查找的文本</translation>
    </message>
    <message>
        <source>Next</source>
        <translation>下一个</translation>
    </message>
    <message>
        <source>Previous</source>
        <translation>上一个</translation>
    </message>
    <message>
        <source>&amp;Find in the log</source>
        <translation>在日志中查找(&amp;F)</translation>
    </message>
    <message>
        <source>Not found</source>
        <translation>未找到</translation>
    </message>
</context>
<context>
    <name>ferry::gui::MainWindow</name>
    <message>
        <source>Pages</source>
        <translation>页面</translation>
    </message>
    <message>
        <source>Start</source>
        <translation>开始</translation>
    </message>
    <message>
        <source>Runs</source>
        <translation>运行</translation>
    </message>
    <message>
        <source>New run</source>
        <translation>新建运行</translation>
    </message>
    <message>
        <source>Live</source>
        <translation>实时</translation>
    </message>
    <message>
        <source>Samples</source>
        <translation>采样文本</translation>
    </message>
    <message>
        <source>Compare</source>
        <translation>对比</translation>
    </message>
    <message>
        <source>Try it</source>
        <translation>试用</translation>
    </message>
    <message>
        <source>Export</source>
        <translation>导出</translation>
    </message>
    <message>
        <source>Doctor</source>
        <translation>诊断</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>设置</translation>
    </message>
    <message>
        <source>&amp;File</source>
        <translation>文件(&amp;F)</translation>
    </message>
    <message>
        <source>&amp;New run</source>
        <translation>新建运行(&amp;N)</translation>
    </message>
    <message>
        <source>&amp;Settings</source>
        <translation>设置(&amp;S)</translation>
    </message>
    <message>
        <source>&amp;Close window</source>
        <translation>关闭窗口(&amp;C)</translation>
    </message>
    <message>
        <source>&amp;Quit</source>
        <translation>退出(&amp;Q)</translation>
    </message>
    <message>
        <source>&amp;Actions</source>
        <translation>操作(&amp;A)</translation>
    </message>
    <message>
        <source>&amp;View</source>
        <translation>视图(&amp;V)</translation>
    </message>
    <message>
        <source>&amp;Full screen</source>
        <translation>全屏(&amp;F)</translation>
    </message>
    <message>
        <source>&amp;Help</source>
        <translation>帮助(&amp;H)</translation>
    </message>
    <message>
        <source>&amp;Check this machine</source>
        <translation>检查本机(&amp;C)</translation>
    </message>
    <message>
        <source>&amp;About Ferry</source>
        <translation>关于 Ferry(&amp;A)</translation>
    </message>
    <message>
        <source>About Ferry</source>
        <translation>关于 Ferry</translation>
    </message>
    <message>
        <source>&lt;b&gt;Ferry %1&lt;/b&gt;&lt;p&gt;Trains transformers on a GPU that is too small for them.&lt;/p&gt;&lt;p&gt;This app is free software under the GNU General Public License, version 3: it draws charts with QCustomPlot. Ferry itself is under the Apache License 2.0.&lt;/p&gt;</source>
        <translation>&lt;b&gt;Ferry %1&lt;/b&gt;&lt;p&gt;在容纳不下模型的 GPU 上训练 Transformer 模型。&lt;/p&gt;&lt;p&gt;本应用是自由软件，采用 GNU 通用公共许可证第 3 版：它使用 QCustomPlot 绘制图表。Ferry 本身采用 Apache 许可证 2.0。&lt;/p&gt;</translation>
    </message>
    <message>
        <source>In the queue: it starts when no other run trains, once the queue is on.</source>
        <translation>在队列中：队列开启且没有其他运行在训练时，它会启动。</translation>
    </message>
    <message>
        <source>Load of this machine</source>
        <translation>本机负载</translation>
    </message>
    <message>
        <source>&amp;Larger text</source>
        <translation>放大文字(&amp;L)</translation>
    </message>
    <message>
        <source>S&amp;maller text</source>
        <translation>缩小文字(&amp;M)</translation>
    </message>
    <message>
        <source>&amp;Usual text</source>
        <translation>默认大小(&amp;U)</translation>
    </message>
    <message>
        <source>Text size: %1 %</source>
        <translation>文字大小：%1 %</translation>
    </message>
    <message numerus="yes">
        <source>%n run(s) stay paused until an app is open again: %1.</source>
        <translation>
            <numerusform>%n 个运行会一直暂停，直到再次打开应用：%1。</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>The queue starts none of its %n run(s).</source>
        <translation>
            <numerusform>队列中的 %n 个运行都不会启动。</numerusform>
        </translation>
    </message>
    <message>
        <source>Runs train outside the run hours, too.</source>
        <translation>运行在运行时段之外也会训练。</translation>
    </message>
    <message>
        <source>Runs do not make way for other programs on the GPU.</source>
        <translation>运行不会把 GPU 让给其他程序。</translation>
    </message>
    <message>
        <source>Close Ferry?</source>
        <translation>关闭 Ferry？</translation>
    </message>
    <message>
        <source>While no Ferry app is open:</source>
        <translation>没有打开 Ferry 应用期间：</translation>
    </message>
    <message>
        <source>C&amp;lose</source>
        <translation>关闭(&amp;L)</translation>
    </message>
    <message>
        <source>&amp;Resume them and close</source>
        <translation>继续它们并关闭(&amp;R)</translation>
    </message>
    <message>
        <source>&amp;Stay</source>
        <translation>留下(&amp;S)</translation>
    </message>
    <message>
        <source>This machine: %1</source>
        <translation>本机：%1</translation>
    </message>
</context>
<context>
    <name>ferry::gui::MetricsTable</name>
    <message>
        <source>Step</source>
        <translation>步</translation>
    </message>
</context>
<context>
    <name>ferry::gui::ModelPanel</name>
    <message>
        <source>Choose a model to see what it is.</source>
        <translation>选择模型以查看其信息。</translation>
    </message>
    <message>
        <source>%1, a decoder</source>
        <translation>%1，解码器</translation>
    </message>
    <message>
        <source>%1, an encoder</source>
        <translation>%1，编码器</translation>
    </message>
    <message>
        <source>%1 layers</source>
        <translation>%1 层</translation>
    </message>
    <message>
        <source>%1 parameters</source>
        <translation>%1 个参数</translation>
    </message>
    <message>
        <source>width %1</source>
        <translation>宽度 %1</translation>
    </message>
    <message>
        <source>%1 tokens known</source>
        <translation>词表 %1 个词元</translation>
    </message>
    <message>
        <source>texts of up to %1 tokens</source>
        <translation>文本最长 %1 个词元</translation>
    </message>
    <message>
        <source>Models on this machine</source>
        <translation>本机上的模型</translation>
    </message>
    <message>
        <source>On this machine</source>
        <translation>本机模型</translation>
    </message>
    <message>
        <source>Family</source>
        <translation>系列</translation>
    </message>
    <message>
        <source>Parameters</source>
        <translation>参数</translation>
    </message>
    <message>
        <source>Found in</source>
        <translation>来源</translation>
    </message>
    <message>
        <source>The chosen model</source>
        <translation>所选模型</translation>
    </message>
    <message>
        <source>unreadable</source>
        <translation>无法读取</translation>
    </message>
    <message>
        <source>cannot be trained: %1</source>
        <translation>无法训练：%1</translation>
    </message>
    <message>
        <source>It is trained for: %1.</source>
        <translation>可训练的任务：%1。</translation>
    </message>
    <message>
        <source>It lies in %1.</source>
        <translation>位于 %1。</translation>
    </message>
    <message>
        <source>No model is on this machine yet. Type a name of the Hugging Face hub (ORGANISATION/NAME) to download it, or browse to a directory.</source>
        <translation>本机还没有模型。输入 Hugging Face Hub 上的名称（组织/名称）即可下载，或浏览选择目录。</translation>
    </message>
</context>
<context>
    <name>ferry::gui::NewRunPage</name>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Data</source>
        <translation>数据</translation>
    </message>
    <message>
        <source>Method</source>
        <translation>方法</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>内存</translation>
    </message>
    <message>
        <source>Review</source>
        <translation>核对</translation>
    </message>
    <message>
        <source>The model to begin with, and what it is to learn.</source>
        <translation>从哪个模型开始，以及让它学什么。</translation>
    </message>
    <message>
        <source>The texts to learn from, and those that tell how well it goes.</source>
        <translation>用于学习的文本，以及用于衡量效果的文本。</translation>
    </message>
    <message>
        <source>How long, how fast and in which portions it learns.</source>
        <translation>学多久、学多快、每次学多少。</translation>
    </message>
    <message>
        <source>How much of this machine it may take. None of it changes the result, unless its help says so.</source>
        <translation>可以占用本机多少资源。除非帮助中另有说明，否则都不影响结果。</translation>
    </message>
    <message>
        <source>Where the result goes, and the last look before it starts.</source>
        <translation>结果存放在哪里，以及启动前的最后核对。</translation>
    </message>
    <message>
        <source>&amp;Start the run</source>
        <translation>开始运行(&amp;S)</translation>
    </message>
    <message>
        <source>Add to the &amp;queue</source>
        <translation>添加到队列(&amp;Q)</translation>
    </message>
    <message>
        <source>&amp;Open settings…</source>
        <translation>打开设置(&amp;O)…</translation>
    </message>
    <message>
        <source>Save settings &amp;as…</source>
        <translation>设置另存为(&amp;A)…</translation>
    </message>
    <message>
        <source>&amp;Find a setting</source>
        <translation>查找设置(&amp;F)</translation>
    </message>
    <message>
        <source>&amp;Clear all settings</source>
        <translation>清除所有设置(&amp;C)</translation>
    </message>
    <message>
        <source>&amp;Next step</source>
        <translation>下一步(&amp;N)</translation>
    </message>
    <message>
        <source>&amp;Previous step</source>
        <translation>上一步(&amp;P)</translation>
    </message>
    <message>
        <source>Find a setting (%1)</source>
        <translation>查找设置（%1）</translation>
    </message>
    <message>
        <source>Find a setting</source>
        <translation>查找设置</translation>
    </message>
    <message>
        <source>&amp;Basic</source>
        <translation>基本(&amp;B)</translation>
    </message>
    <message>
        <source>The settings that most runs need</source>
        <translation>大多数运行需要的设置</translation>
    </message>
    <message>
        <source>All settin&amp;gs</source>
        <translation>所有设置(&amp;G)</translation>
    </message>
    <message>
        <source>Every setting of a training</source>
        <translation>训练的全部设置</translation>
    </message>
    <message>
        <source>Help on the setting</source>
        <translation>设置的帮助</translation>
    </message>
    <message>
        <source>Help on the setting that you are at is shown here.</source>
        <translation>此处显示当前设置的帮助。</translation>
    </message>
    <message>
        <source>Command that failed</source>
        <translation>失败的命令</translation>
    </message>
    <message>
        <source>Close the message</source>
        <translation>关闭消息</translation>
    </message>
    <message>
        <source>Bac&amp;k</source>
        <translation>上一步(&amp;K)</translation>
    </message>
    <message>
        <source>&amp;Next</source>
        <translation>下一步(&amp;N)</translation>
    </message>
    <message>
        <source>Add to &amp;queue</source>
        <translation>添加到队列(&amp;Q)</translation>
    </message>
    <message>
        <source>It starts when the runs before it are over</source>
        <translation>排在它前面的运行结束后开始</translation>
    </message>
    <message>
        <source>&amp;Start</source>
        <translation>开始(&amp;S)</translation>
    </message>
    <message>
        <source>No setting has “%1” in its name or help.</source>
        <translation>没有名称或帮助中含“%1”的设置。</translation>
    </message>
    <message>
        <source>Settings with “%1”: %2</source>
        <translation>含“%1”的设置：%2</translation>
    </message>
    <message>
        <source>A %1 model is not trained for it.</source>
        <translation>%1模型不能用于此任务。</translation>
    </message>
    <message>
        <source>Starting…</source>
        <translation>正在启动…</translation>
    </message>
    <message>
        <source>&amp;Start anyway</source>
        <translation>仍要开始(&amp;S)</translation>
    </message>
    <message>
        <source>○ To do: %1</source>
        <translation>○ 待完成：%1</translation>
    </message>
    <message>
        <source>The run is starting…</source>
        <translation>正在启动运行…</translation>
    </message>
    <message>
        <source>⚠ It would not start as it is: see Review.</source>
        <translation>⚠ 目前的设置无法启动：请看“核对”。</translation>
    </message>
    <message>
        <source>All settings are in order.</source>
        <translation>所有设置均正确。</translation>
    </message>
    <message>
        <source>The run is starting.</source>
        <translation>正在启动运行。</translation>
    </message>
    <message>
        <source>Start the run (%1)</source>
        <translation>开始运行（%1）</translation>
    </message>
    <message>
        <source>The preset “%1” cannot be read.</source>
        <translation>无法读取预设“%1”。</translation>
    </message>
    <message>
        <source>Settings of %1</source>
        <translation>%1 的设置</translation>
    </message>
    <message>
        <source>Saved as %1</source>
        <translation>已保存为 %1</translation>
    </message>
    <message>
        <source>Open settings</source>
        <translation>打开设置</translation>
    </message>
    <message>
        <source>Settings (*.toml)</source>
        <translation>设置 (*.toml)</translation>
    </message>
    <message>
        <source>Save settings</source>
        <translation>保存设置</translation>
    </message>
    <message>
        <source>The run did not start. %1</source>
        <translation>运行未能启动。%1</translation>
    </message>
    <message>
        <source>Planning anew…</source>
        <translation>正在重新规划…</translation>
    </message>
    <message>
        <source>⚠ To fix: %1</source>
        <translation>⚠ 需要修正：%1</translation>
    </message>
    <message>
        <source>Fix what is wrong first: a file holds valid settings.</source>
        <translation>请先修正错误：文件只保存有效的设置。</translation>
    </message>
    <message>
        <source>Take the &amp;draft of the other window</source>
        <translation>取用另一窗口的草稿(&amp;D)</translation>
    </message>
    <message>
        <source>The run is starting: %1</source>
        <translation>正在启动运行：%1</translation>
    </message>
    <message>
        <source>Plan</source>
        <translation>方案</translation>
    </message>
</context>
<context>
    <name>ferry::gui::Notice</name>
    <message>
        <source>Error: %1</source>
        <translation>错误：%1</translation>
    </message>
</context>
<context>
    <name>ferry::gui::OptionField</name>
    <message>
        <source>Reset</source>
        <translation>重置</translation>
    </message>
    <message>
        <source>default on</source>
        <translation>默认开启</translation>
    </message>
    <message>
        <source>default off</source>
        <translation>默认关闭</translation>
    </message>
    <message>
        <source>%1 (default)</source>
        <translation>%1（默认）</translation>
    </message>
    <message>
        <source>Browse…</source>
        <translation>浏览…</translation>
    </message>
    <message>
        <source>Browse for %1</source>
        <translation>浏览%1</translation>
    </message>
    <message>
        <source>Files…</source>
        <translation>文件…</translation>
    </message>
    <message>
        <source>File…</source>
        <translation>文件…</translation>
    </message>
    <message>
        <source>Folder…</source>
        <translation>文件夹…</translation>
    </message>
    <message>
        <source>It does not change what is learned.</source>
        <translation>不影响学习结果。</translation>
    </message>
    <message>
        <source>A run that is resumed keeps it.</source>
        <translation>恢复的运行会沿用它。</translation>
    </message>
    <message>
        <source>It may be changed when a run is resumed.</source>
        <translation>恢复运行时可以更改。</translation>
    </message>
    <message>
        <source>default %1</source>
        <translation>默认 %1</translation>
    </message>
    <message>
        <source>%1, changed</source>
        <translation>%1，已更改</translation>
    </message>
    <message>
        <source>Changed. The default is empty.</source>
        <translation>已更改。默认为空。</translation>
    </message>
    <message>
        <source>Changed. The default is %1.</source>
        <translation>已更改。默认值为 %1。</translation>
    </message>
    <message>
        <source>%1 is changed</source>
        <translation>%1已更改</translation>
    </message>
    <message>
        <source>Reset %1</source>
        <translation>重置%1</translation>
    </message>
    <message>
        <source>Choose one of the data&apos;s columns</source>
        <translation>从数据的列中选择</translation>
    </message>
    <message>
        <source>default: %1</source>
        <translation>默认：%1</translation>
    </message>
    <message>
        <source>= %1</source>
        <comment>meaning of a number</comment>
        <translation>= %1</translation>
    </message>
</context>
<context>
    <name>ferry::gui::PlanPicture</name>
    <message>
        <source>%1 MiB</source>
        <translation>%1 MiB</translation>
    </message>
    <message>
        <source>%1 GiB</source>
        <translation>%1 GiB</translation>
    </message>
    <message>
        <source>%1 ms</source>
        <translation>%1 ms</translation>
    </message>
    <message>
        <source>%1 s</source>
        <translation>%1 秒</translation>
    </message>
    <message>
        <source>%1 (−%2)</source>
        <translation>%1（−%2）</translation>
    </message>
    <message>
        <source>weights</source>
        <translation>权重</translation>
    </message>
    <message>
        <source>gradients</source>
        <translation>梯度</translation>
    </message>
    <message>
        <source>optimizer states</source>
        <translation>优化器状态</translation>
    </message>
    <message>
        <source>activations</source>
        <translation>激活值</translation>
    </message>
    <message>
        <source>slots</source>
        <translation>槽位</translation>
    </message>
    <message>
        <source>scratch</source>
        <translation>临时空间</translation>
    </message>
    <message>
        <source>cache of samples</source>
        <translation>采样缓存</translation>
    </message>
    <message>
        <source>transfers and tokens</source>
        <translation>传输与词元</translation>
    </message>
    <message>
        <source>GPU memory</source>
        <translation>显存</translation>
    </message>
    <message>
        <source>%1, %2 pinned</source>
        <translation>%1，锁页 %2</translation>
    </message>
    <message>
        <source>Host memory</source>
        <translation>主机内存</translation>
    </message>
    <message>
        <source>Host memory, beside the plan</source>
        <translation>主机内存（计划之外）</translation>
    </message>
    <message>
        <source>Disk</source>
        <translation>磁盘</translation>
    </message>
    <message>
        <source>limit %1</source>
        <translation>上限 %1</translation>
    </message>
    <message>
        <source>%1 of %2</source>
        <translation>%1（共 %2）</translation>
    </message>
    <message>
        <source>%1: %2 too much</source>
        <translation>%1：超出 %2</translation>
    </message>
    <message>
        <source>driver and kernels</source>
        <translation>驱动与计算内核</translation>
    </message>
    <message>
        <source>process, libraries, texts</source>
        <translation>进程、库、文本</translation>
    </message>
    <message>
        <source>checkpoints</source>
        <translation>检查点</translation>
    </message>
    <message>
        <source>trained model</source>
        <translation>训练好的模型</translation>
    </message>
    <message>
        <source>tokenizers, logs</source>
        <translation>分词器、日志</translation>
    </message>
    <message>
        <source>GPU computes</source>
        <translation>GPU 计算</translation>
    </message>
    <message>
        <source>CPU computes</source>
        <translation>CPU 计算</translation>
    </message>
    <message>
        <source>Copies to the GPU</source>
        <translation>复制到 GPU</translation>
    </message>
    <message>
        <source>Copies from the GPU</source>
        <translation>从 GPU 复制</translation>
    </message>
    <message>
        <source>CPU updates</source>
        <translation>CPU 更新</translation>
    </message>
    <message>
        <source>%1, %2 % of the step</source>
        <translation>%1，占一步的 %2 %</translation>
    </message>
    <message>
        <source>a step: %1</source>
        <translation>一步：%1</translation>
    </message>
    <message>
        <source>A step</source>
        <translation>每步</translation>
    </message>
    <message>
        <source>Speed</source>
        <translation>速度</translation>
    </message>
    <message>
        <source>%1 to %2 samples/s</source>
        <translation>%1 到 %2 样本/秒</translation>
    </message>
    <message>
        <source>%1 samples/s</source>
        <translation>%1 样本/秒</translation>
    </message>
    <message>
        <source>Tokens</source>
        <translation>词元</translation>
    </message>
    <message>
        <source>%1 tokens/s, %2 a text on average</source>
        <translation>%1 词元/秒，每条文本平均 %2 个</translation>
    </message>
    <message>
        <source>%1 tokens/s, texts of %2</source>
        <translation>%1 词元/秒，每条文本 %2 个</translation>
    </message>
    <message>
        <source>The run</source>
        <translation>整个运行</translation>
    </message>
    <message numerus="yes">
        <source>%1 for %n step(s)</source>
        <translation>
            <numerusform>%1，共 %n 步</numerusform>
        </translation>
    </message>
    <message>
        <source>Energy</source>
        <translation>能耗</translation>
    </message>
    <message>
        <source>at most %1 Wh of the GPU</source>
        <translation>GPU 最多 %1 Wh</translation>
    </message>
    <message>
        <source>of %1: a step takes %2, %3 % less</source>
        <translation>%1：每步 %2，减少 %3 %</translation>
    </message>
    <message>
        <source>One more GiB</source>
        <translation>再增加 1 GiB</translation>
    </message>
    <message>
        <source>Figures</source>
        <translation>数据来源</translation>
    </message>
    <message>
        <source>Fits</source>
        <translation>放得下</translation>
    </message>
    <message>
        <source>Tight</source>
        <translation>勉强放得下</translation>
    </message>
    <message>
        <source>Does not fit</source>
        <translation>放不下</translation>
    </message>
    <message>
        <source>The disk has %1 free and the run writes %2.</source>
        <translation>磁盘可用 %1，而运行要写入 %2。</translation>
    </message>
    <message>
        <source>not known: the machine&apos;s profile lacks %1</source>
        <translation>未知：本机的性能数据缺少 %1</translation>
    </message>
    <message>
        <source>not known: the Doctor page measures this machine, or choose a card above</source>
        <translation>未知：可在“诊断”页测量本机，或在上方选择显卡</translation>
    </message>
    <message>
        <source>What the driver, the process and its libraries take is assumed, not measured on that machine.</source>
        <translation>驱动、进程及其库的占用为假设值，并非在该机器上测得。</translation>
    </message>
    <message>
        <source>What the process and its libraries take is assumed, not measured on this machine.</source>
        <translation>进程及其库的占用为假设值，并非在本机上测得。</translation>
    </message>
    <message>
        <source>Published figures of this card disagree: the lower speed is that of the machine %1-low, all else is said of the higher one.</source>
        <translation>此显卡的公开数据不一致：较低的速度对应机器 %1-low，其余均按较高者计算。</translation>
    </message>
    <message>
        <source>Samples take time on top: a training measures them before its first step.</source>
        <translation>采样另需时间：训练会在第一步之前测量。</translation>
    </message>
    <message>
        <source>%1 on %2.</source>
        <translation>%2：%1。</translation>
    </message>
    <message>
        <source>%1: %2; %3.</source>
        <translation>%1：%2；%3。</translation>
    </message>
    <message>
        <source>%1: %2.</source>
        <translation>%1：%2。</translation>
    </message>
    <message>
        <source>the CPU</source>
        <translation>处理器</translation>
    </message>
    <message>
        <source>%1, by its profile</source>
        <translation>%1（按其配置文件）</translation>
    </message>
    <message>
        <source>No plan</source>
        <translation>没有方案</translation>
    </message>
    <message>
        <source>No plan: %1</source>
        <translation>没有方案：%1</translation>
    </message>
    <message>
        <source>NVMe</source>
        <translation>NVMe</translation>
    </message>
    <message>
        <source>more copies of them</source>
        <translation>它们的其他副本</translation>
    </message>
    <message>
        <source>Reads from NVMe</source>
        <translation>从 NVMe 读取</translation>
    </message>
    <message>
        <source>Writes to NVMe</source>
        <translation>写入 NVMe</translation>
    </message>
    <message>
        <source>NVMe, a step</source>
        <translation>NVMe，每步</translation>
    </message>
    <message>
        <source>%1 read, %2 written</source>
        <translation>读取 %1，写入 %2</translation>
    </message>
    <message>
        <source>The drive lasts</source>
        <translation>硬盘可用</translation>
    </message>
    <message>
        <source>%1 steps</source>
        <translation>%1 步</translation>
    </message>
    <message>
        <source>%1 years</source>
        <translation>%1 年</translation>
    </message>
    <message>
        <source>%1 of training without a pause, %2 steps</source>
        <translation>不间断训练 %1，共 %2 步</translation>
    </message>
    <message>
        <source>This run writes so much to the drive that it is worn after %1 of training without a pause. More host memory, 8-bit optimizer states or larger steps write less.</source>
        <translation>此次运行对硬盘的写入量很大，不间断训练 %1 后硬盘就会磨损殆尽。更多主机内存、8 位优化器状态或更大的步可以减少写入。</translation>
    </message>
    <message>
        <source>%1 — limits the step</source>
        <translation>%1 — 决定每步的时间</translation>
    </message>
    <message>
        <source>less than a second</source>
        <translation>不到一秒</translation>
    </message>
    <message>
        <source>saves less than 1 % of the time</source>
        <translation>节省的时间不到 1 %</translation>
    </message>
    <message>
        <source>Exchanges between GPUs</source>
        <translation>GPU 之间的数据交换</translation>
    </message>
</context>
<context>
    <name>ferry::gui::PlanView</name>
    <message>
        <source>planning…</source>
        <translation>正在规划…</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>内存</translation>
    </message>
    <message>
        <source>A step</source>
        <translation>每步</translation>
    </message>
    <message>
        <source>Point at a part of a bar, or use the arrow keys, to read it out.</source>
        <translation>指向条形的某一部分或使用方向键可查看数值。</translation>
    </message>
    <message>
        <source>Reading</source>
        <translation>正在读取</translation>
    </message>
    <message>
        <source>This machine</source>
        <translation>本机</translation>
    </message>
    <message>
        <source>Machine that is planned for</source>
        <translation>规划所针对的机器</translation>
    </message>
    <message>
        <source>Plan for this machine, or for a card that is not here.</source>
        <translation>针对本机或不在此处的显卡进行规划。</translation>
    </message>
    <message>
        <source>auto</source>
        <translation>自动</translation>
    </message>
    <message>
        <source>&amp;Plan for</source>
        <translation>规划对象(&amp;P)</translation>
    </message>
    <message>
        <source>GP&amp;U memory</source>
        <translation>显存(&amp;U)</translation>
    </message>
    <message>
        <source>GPU memory that Ferry may take</source>
        <translation>Ferry 可占用的显存</translation>
    </message>
    <message>
        <source>H&amp;ost memory</source>
        <translation>主机内存(&amp;O)</translation>
    </message>
    <message>
        <source>Host memory that Ferry may take</source>
        <translation>Ferry 可占用的主机内存</translation>
    </message>
    <message>
        <source>%1: as much as is free</source>
        <translation>%1：使用全部可用量</translation>
    </message>
    <message>
        <source>As much as is free, but a margin</source>
        <translation>使用全部可用量，并留出余量</translation>
    </message>
    <message>
        <source>auto: %1</source>
        <translation>自动：%1</translation>
    </message>
    <message>
        <source>%1 of %2</source>
        <translation>%1（共 %2）</translation>
    </message>
    <message>
        <source>no GPU</source>
        <translation>没有 GPU</translation>
    </message>
    <message>
        <source>There is no GPU to plan for. Choose a card, or type an amount such as 11GiB.</source>
        <translation>没有可用于规划的 GPU。请选择显卡，或输入容量，例如 11GiB。</translation>
    </message>
    <message>
        <source>Memory by place</source>
        <translation>各处内存占用</translation>
    </message>
    <message>
        <source>Time of a step by resource</source>
        <translation>各资源的每步用时</translation>
    </message>
    <message>
        <source>Time</source>
        <translation>时间</translation>
    </message>
    <message>
        <source>A step: %1</source>
        <translation>每步：%1</translation>
    </message>
    <message numerus="yes">
        <source>The figures rest on %n assumption(s)</source>
        <translation>
            <numerusform>这些数据基于 %n 项假设</numerusform>
        </translation>
    </message>
    <message>
        <source>%1 — %2</source>
        <translation>%1 — %2</translation>
    </message>
    <message>
        <source>Memory plan: %1</source>
        <translation>内存方案：%1</translation>
    </message>
    <message>
        <source>Set %1: then it fits</source>
        <translation>设置 %1：这样就放得下</translation>
    </message>
    <message>
        <source>With this it fits.</source>
        <translation>这样就放得下。</translation>
    </message>
    <message>
        <source>NVMe drive</source>
        <translation>NVMe 硬盘</translation>
    </message>
    <message>
        <source>Batch size: samples of a step</source>
        <translation>批次大小：每步的样本数</translation>
    </message>
    <message>
        <source>Longest text, in tokens</source>
        <translation>最长文本（词元）</translation>
    </message>
    <message>
        <source>Batch si&amp;ze</source>
        <translation>批次大小(&amp;Z)</translation>
    </message>
    <message>
        <source>Longest &amp;text</source>
        <translation>最长文本(&amp;T)</translation>
    </message>
    <message>
        <source>A plan for another machine: what you change here is tried in this plan alone, and the run keeps its settings.</source>
        <translation>这是另一台机器的规划：在此更改的内容只用于这份规划，运行的设置保持不变。</translation>
    </message>
    <message>
        <source>Use in the run</source>
        <translation>用于该运行</translation>
    </message>
    <message>
        <source>Makes what was tried here settings of the run</source>
        <translation>把在此试过的值设为该运行的设置</translation>
    </message>
    <message>
        <source>No plan yet</source>
        <translation>尚无规划</translation>
    </message>
</context>
<context>
    <name>ferry::gui::PresetList</name>
    <message>
        <source>Search presets: a model, a task, a card</source>
        <translation>搜索预设：模型、任务、显卡</translation>
    </message>
    <message>
        <source>Search presets</source>
        <translation>搜索预设</translation>
    </message>
    <message>
        <source>Presets</source>
        <translation>预设</translation>
    </message>
    <message>
        <source>No preset has these words.</source>
        <translation>没有含这些词的预设。</translation>
    </message>
    <message>
        <source>%1 (yours)</source>
        <translation>%1（自建）</translation>
    </message>
    <message>
        <source>Only presets that fit this machine</source>
        <translation>仅显示适合本机的预设</translation>
    </message>
    <message>
        <source>%1: %2 (yours)</source>
        <comment>name and title of a preset</comment>
        <translation>%1：%2（您的）</translation>
    </message>
</context>
<context>
    <name>ferry::gui::PresetModel</name>
    <message>
        <source>does not fit its card</source>
        <translation>在其显卡上放不下</translation>
    </message>
    <message>
        <source>takes %1 of GPU and %2 of host memory</source>
        <translation>占用显存 %1、主机内存 %2</translation>
    </message>
    <message>
        <source>takes %1 of host memory</source>
        <translation>占用主机内存 %1</translation>
    </message>
    <message>
        <source>%1, %2 samples/s</source>
        <translation>%1，%2 样本/秒</translation>
    </message>
    <message>
        <source>any machine</source>
        <translation>任意机器</translation>
    </message>
    <message>
        <source>here: %1</source>
        <translation>本机：%1</translation>
    </message>
    <message>
        <source>No plan: %1</source>
        <translation>没有方案：%1</translation>
    </message>
    <message>
        <source>Give the preset a name.</source>
        <translation>请为预设命名。</translation>
    </message>
    <message>
        <source>A name has no “/” and does not begin with a point.</source>
        <translation>名称不能包含“/”，也不能以点开头。</translation>
    </message>
    <message>
        <source>The name is too long.</source>
        <translation>名称过长。</translation>
    </message>
    <message>
        <source>There is no home directory to save in.</source>
        <translation>没有可供保存的主目录。</translation>
    </message>
    <message>
        <source>There is a preset of your own called “%1”.</source>
        <translation>您已有名为“%1”的预设。</translation>
    </message>
    <message>
        <source>Only presets of your own can be renamed.</source>
        <translation>只能重命名您自己的预设。</translation>
    </message>
    <message>
        <source>It cannot be renamed: %1</source>
        <translation>无法重命名：%1</translation>
    </message>
    <message>
        <source>Only presets of your own can be deleted.</source>
        <translation>只能删除您自己的预设。</translation>
    </message>
    <message>
        <source>It cannot be deleted: %1</source>
        <translation>无法删除：%1</translation>
    </message>
    <message>
        <source>There is no preset “%1”.</source>
        <translation>没有预设“%1”。</translation>
    </message>
    <message>
        <source>It cannot be read: %1</source>
        <translation>无法读取：%1</translation>
    </message>
</context>
<context>
    <name>ferry::gui::PresetPicker</name>
    <message>
        <source>Classify texts</source>
        <translation>文本分类</translation>
    </message>
    <message>
        <source>Tag words</source>
        <translation>词语标注</translation>
    </message>
    <message>
        <source>Answer questions from a text</source>
        <translation>从文本中找答案</translation>
    </message>
    <message>
        <source>Write texts</source>
        <translation>生成文本</translation>
    </message>
    <message>
        <source>Adapt an encoder to texts</source>
        <translation>让编码器适应文本</translation>
    </message>
    <message>
        <source>Files that are no presets</source>
        <translation>不是预设的文件</translation>
    </message>
    <message>
        <source>Manage presets</source>
        <translation>管理预设</translation>
    </message>
    <message>
        <source>Save these settings as a preset; copy, rename or delete one</source>
        <translation>将这些设置保存为预设；复制、重命名或删除预设</translation>
    </message>
    <message>
        <source>&amp;Save settings as a preset…</source>
        <translation>将设置保存为预设(&amp;S)…</translation>
    </message>
    <message>
        <source>&amp;Copy this preset…</source>
        <translation>复制此预设(&amp;C)…</translation>
    </message>
    <message>
        <source>Copy preset</source>
        <translation>复制预设</translation>
    </message>
    <message>
        <source>&amp;Rename this preset…</source>
        <translation>重命名此预设(&amp;R)…</translation>
    </message>
    <message>
        <source>Rename preset</source>
        <translation>重命名预设</translation>
    </message>
    <message>
        <source>&amp;Delete this preset</source>
        <translation>删除此预设(&amp;D)</translation>
    </message>
    <message>
        <source>Choose a preset…</source>
        <translation>选择预设…</translation>
    </message>
    <message>
        <source>Preset: %1 (changed)</source>
        <translation>预设：%1（已更改）</translation>
    </message>
    <message>
        <source>Preset: %1</source>
        <translation>预设：%1</translation>
    </message>
    <message>
        <source>Presets that come with Ferry stay as they are.</source>
        <translation>Ferry 自带的预设不能更改。</translation>
    </message>
    <message>
        <source>&amp;Name</source>
        <translation>名称(&amp;N)</translation>
    </message>
    <message>
        <source>Save settings as a preset</source>
        <translation>将设置保存为预设</translation>
    </message>
    <message>
        <source>The preset “%1” is deleted.</source>
        <translation>预设“%1”已删除。</translation>
    </message>
    <message>
        <source>Fix what is wrong first: a preset holds valid settings.</source>
        <translation>请先修正错误：预设只保存有效的设置。</translation>
    </message>
    <message>
        <source>Prefer better answers</source>
        <translation>偏好更好的回答</translation>
    </message>
</context>
<context>
    <name>ferry::gui::QueueSection</name>
    <message>
        <source>Start &amp;queued runs one after another</source>
        <translation>依次启动队列中的运行(&amp;Q)</translation>
    </message>
    <message>
        <source>Nothing waits. “Add to queue” on New run puts settings here.</source>
        <translation>没有等待的运行。在“新建运行”中点“添加到队列”，设置就会排到这里。</translation>
    </message>
    <message>
        <source>Queue</source>
        <translation>队列</translation>
    </message>
    <message>
        <source>Start no&amp;w</source>
        <translation>立即开始(&amp;W)</translation>
    </message>
    <message>
        <source>Move &amp;up</source>
        <translation>上移(&amp;U)</translation>
    </message>
    <message>
        <source>Move &amp;down</source>
        <translation>下移(&amp;D)</translation>
    </message>
    <message>
        <source>&amp;Remove</source>
        <translation>移除(&amp;R)</translation>
    </message>
</context>
<context>
    <name>ferry::gui::ReviewPanel</name>
    <message>
        <source>Problems</source>
        <translation>问题</translation>
    </message>
    <message>
        <source>Command line</source>
        <translation>命令行</translation>
    </message>
    <message>
        <source>The command that starts it</source>
        <translation>用于启动的命令</translation>
    </message>
    <message>
        <source>&amp;Copy command</source>
        <translation>复制命令(&amp;C)</translation>
    </message>
    <message>
        <source>Model, data and directory</source>
        <translation>模型、数据和目录</translation>
    </message>
    <message>
        <source>Settings of this run</source>
        <translation>此运行的设置</translation>
    </message>
    <message>
        <source>Setting</source>
        <translation>设置</translation>
    </message>
    <message>
        <source>Value</source>
        <translation>值</translation>
    </message>
    <message>
        <source>Default</source>
        <translation>默认值</translation>
    </message>
    <message>
        <source>Group</source>
        <translation>分组</translation>
    </message>
    <message>
        <source>What is set</source>
        <translation>已设置的内容</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <comment>setting: problem</comment>
        <translation>%1：%2</translation>
    </message>
    <message>
        <source>The command is shown once all settings are in order.</source>
        <translation>所有设置都正确后，才会显示命令。</translation>
    </message>
    <message>
        <source>Reading model and data…</source>
        <translation>正在读取模型和数据…</translation>
    </message>
    <message>
        <source>✓ Model, data and directory are in order.</source>
        <translation>✓ 模型、数据和目录均正常。</translation>
    </message>
    <message>
        <source>They are read once all settings are in order.</source>
        <translation>所有设置都正确后，才会读取它们。</translation>
    </message>
    <message>
        <source>To fix before it can start</source>
        <translation>启动前需要修正</translation>
    </message>
</context>
<context>
    <name>ferry::gui::RunChooser</name>
    <message>
        <source>Search by name, model or state</source>
        <translation>按名称、模型或状态搜索</translation>
    </message>
    <message>
        <source>Search runs</source>
        <translation>搜索运行</translation>
    </message>
    <message>
        <source>Looking for runs…</source>
        <translation>正在查找运行…</translation>
    </message>
    <message numerus="yes">
        <source>At most %n runs</source>
        <translation>
            <numerusform>最多 %n 个运行</numerusform>
        </translation>
    </message>
    <message>
        <source>There are no runs yet. Start offers a first one that fits this machine.</source>
        <translation>还没有运行。“开始”页提供一个适合本机的首次运行。</translation>
    </message>
</context>
<context>
    <name>ferry::gui::RunFollower</name>
    <message>
        <source>It was asked to end.</source>
        <translation>已被要求结束。</translation>
    </message>
    <message>
        <source>Its process was killed.</source>
        <translation>进程被终止。</translation>
    </message>
</context>
<context>
    <name>ferry::gui::RunHeader</name>
    <message>
        <source>Steps</source>
        <translation>步数</translation>
    </message>
    <message>
        <source>Epoch</source>
        <translation>轮</translation>
    </message>
    <message>
        <source>Time left</source>
        <translation>剩余时间</translation>
    </message>
    <message>
        <source>Loss</source>
        <translation>损失</translation>
    </message>
    <message>
        <source>Speed</source>
        <translation>速度</translation>
    </message>
    <message>
        <source>State: %1</source>
        <translation>状态：%1</translation>
    </message>
    <message>
        <source>Step %1 of %2</source>
        <translation>第 %1 步，共 %2 步</translation>
    </message>
    <message>
        <source>Step %1</source>
        <translation>第 %1 步</translation>
    </message>
    <message>
        <source>Epoch %1 of %2</source>
        <translation>第 %1 轮，共 %2 轮</translation>
    </message>
    <message>
        <source>none</source>
        <comment>no time left is known</comment>
        <translation>无</translation>
    </message>
    <message>
        <source>paused</source>
        <translation>已暂停</translation>
    </message>
    <message>
        <source>estimating</source>
        <translation>正在估算</translation>
    </message>
    <message>
        <source>%1 tokens/s</source>
        <translation>%1 词元/秒</translation>
    </message>
</context>
<context>
    <name>ferry::gui::RunKeeper</name>
    <message>
        <source>Run hours begin at %1</source>
        <translation>训练时段从 %1 开始</translation>
    </message>
    <message>
        <source>Another program uses the GPU&apos;s memory</source>
        <translation>另一个程序正在占用显存</translation>
    </message>
    <message>
        <source>%1 is paused: %2</source>
        <translation>%1 已暂停：%2</translation>
    </message>
    <message>
        <source>%1 is resumed</source>
        <translation>%1 已继续</translation>
    </message>
</context>
<context>
    <name>ferry::gui::RunListModel</name>
    <message>
        <source>Its directory was removed.</source>
        <translation>它的目录已被移除。</translation>
    </message>
    <message>
        <source>State</source>
        <translation>状态</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>名称</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Data and task</source>
        <translation>数据和任务</translation>
    </message>
    <message>
        <source>Loss</source>
        <translation>损失</translation>
    </message>
    <message>
        <source>Curve</source>
        <translation>曲线</translation>
    </message>
    <message>
        <source>Progress</source>
        <translation>进度</translation>
    </message>
    <message>
        <source>Time</source>
        <translation>时间</translation>
    </message>
    <message>
        <source>Tokens/s</source>
        <translation>词元/秒</translation>
    </message>
    <message>
        <source>Started</source>
        <translation>启动时间</translation>
    </message>
    <message>
        <source>Starting</source>
        <translation>正在启动</translation>
    </message>
    <message>
        <source>Not started</source>
        <translation>未启动</translation>
    </message>
    <message>
        <source>Removed</source>
        <translation>已移除</translation>
    </message>
    <message>
        <source>Reading</source>
        <translation>正在读取</translation>
    </message>
    <message>
        <source>%1 (%2)</source>
        <comment>data and task</comment>
        <translation>%1（%2）</translation>
    </message>
    <message>
        <source>%3 % (%1/%2)</source>
        <comment>steps done, all steps, percent</comment>
        <translation>%3 % (%1/%2)</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <comment>column and value</comment>
        <translation>%1：%2</translation>
    </message>
    <message>
        <source>none</source>
        <translation>无</translation>
    </message>
    <message>
        <source>Loss curve: none</source>
        <translation>损失曲线：无</translation>
    </message>
    <message>
        <source>falling</source>
        <translation>下降</translation>
    </message>
    <message>
        <source>rising</source>
        <translation>上升</translation>
    </message>
    <message>
        <source>level</source>
        <translation>持平</translation>
    </message>
    <message>
        <source>Loss curve: from %1 to %2, %3</source>
        <translation>损失曲线：从 %1 到 %2，%3</translation>
    </message>
    <message>
        <source>%1; it has values that are not finite</source>
        <translation>%1；含有非有限值</translation>
    </message>
</context>
<context>
    <name>ferry::gui::RunNotices</name>
    <message>
        <source>%1: %2</source>
        <comment>run and its state</comment>
        <translation>%1：%2</translation>
    </message>
    <message>
        <source>All steps are done, and the end of the run does not fit the disk. Make room, and the run finishes by itself.</source>
        <translation>所有步骤已完成，但结果在磁盘上放不下。腾出空间后运行会自动完成。</translation>
    </message>
    <message>
        <source>Open the run</source>
        <translation>打开该运行</translation>
    </message>
</context>
<context>
    <name>ferry::gui::RunPicker</name>
    <message>
        <source>Run</source>
        <translation>运行</translation>
    </message>
    <message>
        <source>Type a part of a run&apos;s name</source>
        <translation>输入运行名称的一部分</translation>
    </message>
    <message>
        <source>&amp;Run</source>
        <translation>运行(&amp;R)</translation>
    </message>
    <message>
        <source>Model of the run</source>
        <translation>运行的模型</translation>
    </message>
    <message>
        <source>&amp;Model</source>
        <translation>模型(&amp;M)</translation>
    </message>
    <message>
        <source>Fol&amp;der...</source>
        <translation>文件夹(&amp;D)...</translation>
    </message>
    <message>
        <source>Choose a model&apos;s folder that is no run</source>
        <translation>选择不属于运行的模型文件夹</translation>
    </message>
    <message>
        <source>%1 (%2)</source>
        <translation>%1（%2）</translation>
    </message>
    <message>
        <source>Looking for runs...</source>
        <translation>正在查找运行...</translation>
    </message>
    <message>
        <source>There are no runs yet.</source>
        <translation>还没有运行。</translation>
    </message>
    <message>
        <source>Finished model</source>
        <translation>训练完成的模型</translation>
    </message>
    <message>
        <source>Checkpoint after %1 steps</source>
        <translation>%1 步后的检查点</translation>
    </message>
    <message>
        <source>No model yet</source>
        <translation>尚无模型</translation>
    </message>
    <message>
        <source>Folder of a model or a run</source>
        <translation>模型或运行的文件夹</translation>
    </message>
</context>
<context>
    <name>ferry::gui::RunProgress</name>
    <message>
        <source>Killed, most likely out of host memory: planned %1, available %2.</source>
        <translation>被终止，很可能是主机内存不足：计划占用 %1，可用 %2。</translation>
    </message>
    <message>
        <source>Killed, most likely out of host memory: planned %1, available now %2.</source>
        <translation>被终止，很可能是主机内存不足：计划占用 %1，目前可用 %2。</translation>
    </message>
    <message>
        <source>It failed; its log says more.</source>
        <translation>运行失败；详情见日志。</translation>
    </message>
    <message>
        <source>It ended before its first step; its log says more.</source>
        <translation>第一步之前就已结束；详情见日志。</translation>
    </message>
    <message>
        <source>The process ended unexpectedly: it was killed, or the power failed.</source>
        <translation>进程意外结束：它被终止，或者断电了。</translation>
    </message>
    <message>
        <source>The process ended unexpectedly: it was killed, or the power failed. It had planned %1 of host memory; %2 are available now.</source>
        <translation>进程意外结束：它被终止，或者断电了。它计划使用 %1 主机内存；现在可用 %2。</translation>
    </message>
    <message>
        <source>The process ended unexpectedly: it was killed, or the power failed. It had planned %1 of host memory.</source>
        <translation>进程意外结束：它被终止，或者断电了。它计划使用 %1 主机内存。</translation>
    </message>
</context>
<context>
    <name>ferry::gui::RunQueue</name>
    <message>
        <source>It could not be started.</source>
        <translation>无法启动。</translation>
    </message>
    <message>
        <source>The queue cannot be written: %1</source>
        <translation>无法写入队列：%1</translation>
    </message>
    <message>
        <source>%1 on %2</source>
        <comment>model on data</comment>
        <translation>%1（%2）</translation>
    </message>
    <message>
        <source>The program ferry is not beside this app. Install both together.</source>
        <translation>程序 ferry 不在本应用所在的目录中。请将两者安装在一起。</translation>
    </message>
    <message>
        <source>Another Ferry app on this machine works on the queue.</source>
        <translation>本机上的另一个 Ferry 应用正在处理队列。</translation>
    </message>
    <message>
        <source>Starting %1</source>
        <translation>正在启动 %1</translation>
    </message>
    <message>
        <source>The queue is off: it starts nothing by itself.</source>
        <translation>队列已关闭：不会自动启动运行。</translation>
    </message>
    <message>
        <source>Next: %1, when %2 has ended</source>
        <translation>下一个：%1，待 %2 结束后启动</translation>
    </message>
    <message>
        <source>Next: %1. %2</source>
        <translation>下一个：%1。%2</translation>
    </message>
    <message>
        <source>Next: %1, in a moment</source>
        <translation>下一个：%1，即将启动</translation>
    </message>
    <message>
        <source>Starting</source>
        <translation>正在启动</translation>
    </message>
    <message>
        <source>Could not start</source>
        <translation>无法启动</translation>
    </message>
    <message>
        <source>Next</source>
        <translation>下一个</translation>
    </message>
    <message>
        <source>Waits</source>
        <translation>等待中</translation>
    </message>
    <message>
        <source>%1, %2: %3. %4</source>
        <translation>%1，%2：%3。%4</translation>
    </message>
    <message>
        <source>%1. %2</source>
        <comment>place in the queue, title</comment>
        <translation>%1. %2</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <comment>state, about</comment>
        <translation>%1：%2</translation>
    </message>
</context>
<context>
    <name>ferry::gui::RunsPage</name>
    <message>
        <source>Actions for the selected runs</source>
        <translation>对所选运行的操作</translation>
    </message>
    <message>
        <source>No runs yet</source>
        <translation>还没有运行</translation>
    </message>
    <message>
        <source>A run is one training of a model on your data. Start offers settings that fit this machine; New run lets you choose your own.</source>
        <translation>一个运行就是用您的数据训练一次模型。“开始”页提供适合本机的设置；“新建运行”页可自行选择设置。</translation>
    </message>
    <message>
        <source>Looking for runs …</source>
        <translation>正在查找运行…</translation>
    </message>
    <message>
        <source>No run matches</source>
        <translation>没有符合条件的运行</translation>
    </message>
    <message>
        <source>No run has all the words and the state that you look for.</source>
        <translation>没有运行同时符合所有搜索词和所选状态。</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <comment>run and reply</comment>
        <translation>%1：%2</translation>
    </message>
    <message>
        <source>%1 could not be started: %2</source>
        <translation>无法启动 %1：%2</translation>
    </message>
    <message>
        <source>New run</source>
        <translation>新建运行</translation>
    </message>
    <message>
        <source>Go to Start</source>
        <translation>前往“开始”</translation>
    </message>
    <message>
        <source>Open</source>
        <translation>打开</translation>
    </message>
    <message>
        <source>Pause</source>
        <translation>暂停</translation>
    </message>
    <message>
        <source>Resume</source>
        <translation>继续</translation>
    </message>
    <message>
        <source>Stop and save</source>
        <translation>停止并保存</translation>
    </message>
    <message>
        <source>Extend</source>
        <translation>延长</translation>
    </message>
    <message>
        <source>Clone settings</source>
        <translation>克隆设置</translation>
    </message>
    <message>
        <source>Compare</source>
        <translation>对比</translation>
    </message>
    <message>
        <source>Samples</source>
        <translation>采样文本</translation>
    </message>
    <message>
        <source>Try it</source>
        <translation>试用</translation>
    </message>
    <message>
        <source>Export</source>
        <translation>导出</translation>
    </message>
    <message>
        <source>Open folder</source>
        <translation>打开文件夹</translation>
    </message>
    <message>
        <source>Report</source>
        <translation>报告</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>删除</translation>
    </message>
    <message>
        <source>Find</source>
        <translation>查找</translation>
    </message>
    <message>
        <source>Show all runs</source>
        <translation>显示所有运行</translation>
    </message>
    <message>
        <source>Runs</source>
        <translation>运行</translation>
    </message>
    <message>
        <source>Search runs</source>
        <translation>搜索运行</translation>
    </message>
    <message>
        <source>S&amp;tate:</source>
        <translation>状态(&amp;T)：</translation>
    </message>
    <message>
        <source>Show runs in this state</source>
        <translation>显示处于此状态的运行</translation>
    </message>
    <message>
        <source>All</source>
        <translation>全部</translation>
    </message>
    <message>
        <source>&amp;New run</source>
        <translation>新建运行(&amp;N)</translation>
    </message>
    <message>
        <source>Details of the selected run</source>
        <translation>所选运行的详情</translation>
    </message>
    <message numerus="yes">
        <source>%n run(s)</source>
        <translation>
            <numerusform>%n 个运行</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1 of %n run(s)</source>
        <translation>
            <numerusform>%1 个运行（共 %n 个）</numerusform>
        </translation>
    </message>
    <message>
        <source>Select a run</source>
        <translation>请选择一个运行</translation>
    </message>
    <message>
        <source>It is being started</source>
        <translation>正在启动</translation>
    </message>
    <message>
        <source>Select one run</source>
        <translation>请只选择一个运行</translation>
    </message>
    <message>
        <source>Select 2 to 6 runs</source>
        <translation>请选择 2 到 6 个运行</translation>
    </message>
    <message>
        <source>It has no settings yet</source>
        <translation>它还没有设置</translation>
    </message>
    <message>
        <source>It has no samples</source>
        <translation>它没有采样文本</translation>
    </message>
    <message>
        <source>It has no checkpoint yet</source>
        <translation>它还没有检查点</translation>
    </message>
    <message>
        <source>Its directory was removed</source>
        <translation>它的目录已被移除</translation>
    </message>
    <message>
        <source>Something is being written</source>
        <translation>正在写入内容</translation>
    </message>
    <message>
        <source>Select a run to see how it ended and where it is. Select several to compare them.</source>
        <translation>选择一个运行，查看它如何结束、保存在哪里。选择多个可进行对比。</translation>
    </message>
    <message numerus="yes">
        <source>%n run(s) selected</source>
        <translation>
            <numerusform>已选择 %n 个运行</numerusform>
        </translation>
    </message>
    <message>
        <source>%1 has had %2 steps. Further steps:</source>
        <translation>%1 已训练 %2 步。再训练的步数：</translation>
    </message>
    <message>
        <source>Move %1 to the trash, with all checkpoints?</source>
        <translation>将 %1 连同所有检查点移到回收站？</translation>
    </message>
    <message>
        <source>Move to trash</source>
        <translation>移到回收站</translation>
    </message>
    <message>
        <source>There is no trash for %1. Delete for good?</source>
        <translation>%1 没有可用的回收站。永久删除？</translation>
    </message>
    <message>
        <source>Delete for good</source>
        <translation>永久删除</translation>
    </message>
    <message>
        <source>The report is written: %1</source>
        <translation>报告已写入：%1</translation>
    </message>
    <message numerus="yes">
        <source>%1 and %n more</source>
        <comment>names of runs</comment>
        <translation>
            <numerusform>%1 及另外 %n 个</numerusform>
        </translation>
    </message>
    <message>
        <source>More</source>
        <translation>更多</translation>
    </message>
</context>
<context>
    <name>ferry::gui::SampleGrid</name>
    <message>
        <source>none</source>
        <translation>无</translation>
    </message>
    <message>
        <source>After %1 steps, prompt %2: %3</source>
        <translation>%1 步后，提示 %2：%3</translation>
    </message>
    <message>
        <source>Step %1</source>
        <translation>第 %1 步</translation>
    </message>
</context>
<context>
    <name>ferry::gui::SamplesPage</name>
    <message>
        <source>Samples</source>
        <translation>采样文本</translation>
    </message>
    <message>
        <source>Copy the text</source>
        <translation>复制文本</translation>
    </message>
    <message>
        <source>Samples: a row a prompt, a column a step</source>
        <translation>采样文本：每行一个提示，每列一个步数</translation>
    </message>
    <message>
        <source>Compare &amp;with</source>
        <translation>对比对象(&amp;W)</translation>
    </message>
    <message>
        <source>Compare with</source>
        <translation>对比对象</translation>
    </message>
    <message>
        <source>Cop&amp;y text</source>
        <translation>复制文本(&amp;Y)</translation>
    </message>
    <message>
        <source>The chosen sample</source>
        <translation>所选采样文本</translation>
    </message>
    <message>
        <source>The sample that it is compared with</source>
        <translation>与之对比的采样文本</translation>
    </message>
    <message>
        <source>&amp;New run</source>
        <translation>新建运行(&amp;N)</translation>
    </message>
    <message numerus="yes">
        <source>%n line(s) of samples are damaged and left out.</source>
        <translation>
            <numerusform>%n 行采样文本已损坏，未显示。</numerusform>
        </translation>
    </message>
    <message>
        <source>Looking for samples...</source>
        <translation>正在查找采样文本...</translation>
    </message>
    <message>
        <source>This run has no samples</source>
        <translation>此运行没有采样文本</translation>
    </message>
    <message>
        <source>Choose a run</source>
        <translation>选择运行</translation>
    </message>
    <message>
        <source>Step %1</source>
        <translation>第 %1 步</translation>
    </message>
    <message>
        <source>ended at its length</source>
        <translation>达到长度上限</translation>
    </message>
    <message>
        <source>ended by itself</source>
        <translation>自行结束</translation>
    </message>
    <message>
        <source>ended at a stop text</source>
        <translation>遇到停止文本</translation>
    </message>
    <message>
        <source>filled the model&apos;s context</source>
        <translation>占满模型上下文</translation>
    </message>
    <message numerus="yes">
        <source>%n token(s), %1. %2.</source>
        <translation>
            <numerusform>%n 个词元，%1。%2。</numerusform>
        </translation>
    </message>
    <message>
        <source>Choose a sample above</source>
        <translation>请在上方选择采样文本</translation>
    </message>
    <message>
        <source>After %1 steps</source>
        <translation>%1 步后</translation>
    </message>
    <message>
        <source>The text is in the clipboard.</source>
        <translation>文本已复制到剪贴板。</translation>
    </message>
    <message numerus="yes">
        <source>%n token(s), %1.</source>
        <translation>
            <numerusform>%n 个词元，%1。</numerusform>
        </translation>
    </message>
    <message>
        <source>Samples show how a language model continues beginnings of your choice while it learns.
To get some, set &quot;%1&quot; (sample_prompts) in a new run of the task causal-lm; &quot;%2&quot; (sample_steps) says how often.</source>
        <translation>样本显示语言模型在学习过程中如何续写您选择的开头。
若要得到样本，请在任务为 causal-lm 的新运行中设置“%1”（sample_prompts）；“%2”（sample_steps）决定频率。</translation>
    </message>
    <message>
        <source>What the model wrote as it learned.</source>
        <translation>模型在学习过程中写出的文本。</translation>
    </message>
</context>
<context>
    <name>ferry::gui::SettingChange</name>
    <message>
        <source>Chan&amp;ge</source>
        <translation>更改(&amp;G)</translation>
    </message>
    <message>
        <source>Setting to change</source>
        <translation>要更改的设置</translation>
    </message>
    <message>
        <source>to</source>
        <comment>change a setting to a value</comment>
        <translation>为</translation>
    </message>
    <message>
        <source>New value</source>
        <translation>新值</translation>
    </message>
    <message>
        <source>A&amp;pply</source>
        <translation>应用(&amp;P)</translation>
    </message>
    <message>
        <source>The run uses the value from its next step on.</source>
        <translation>运行从下一步起使用该值。</translation>
    </message>
    <message>
        <source>Not now: %1.</source>
        <translation>当前不可用：%1。</translation>
    </message>
</context>
<context>
    <name>ferry::gui::SettingsModel</name>
    <message>
        <source>Setting</source>
        <translation>设置</translation>
    </message>
    <message>
        <source>Value</source>
        <translation>值</translation>
    </message>
    <message>
        <source>Unit</source>
        <translation>单位</translation>
    </message>
    <message>
        <source>Default</source>
        <translation>默认值</translation>
    </message>
    <message>
        <source>Group</source>
        <translation>分组</translation>
    </message>
    <message>
        <source>Changed</source>
        <translation>更改</translation>
    </message>
    <message>
        <source>changed</source>
        <translation>已更改</translation>
    </message>
    <message>
        <source>%1, default %2</source>
        <translation>%1，默认为 %2</translation>
    </message>
    <message>
        <source>%1, changed to %2</source>
        <translation>%1，已更改为 %2</translation>
    </message>
    <message>
        <source>Choose a model.</source>
        <translation>请选择模型。</translation>
    </message>
    <message>
        <source>Choose the data to train on.</source>
        <translation>请选择训练数据。</translation>
    </message>
</context>
<context>
    <name>ferry::gui::SettingsPage</name>
    <message>
        <source>%1 is no folder.</source>
        <translation>%1 不是文件夹。</translation>
    </message>
    <message>
        <source>Nothing may be written to %1. New runs would fail.</source>
        <translation>没有权限写入 %1。新运行会失败。</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>设置</translation>
    </message>
    <message>
        <source>Folders</source>
        <translation>文件夹</translation>
    </message>
    <message>
        <source>&amp;Browse...</source>
        <translation>浏览(&amp;B)...</translation>
    </message>
    <message>
        <source>&amp;Runs folder</source>
        <translation>运行文件夹(&amp;R)</translation>
    </message>
    <message>
        <source>New runs get a folder of their own in it. Runs that are there already stay where they are.</source>
        <translation>每个新运行都会在其中建立自己的文件夹。已有的运行保留在原处。</translation>
    </message>
    <message>
        <source>Folder for new runs</source>
        <translation>存放新运行的文件夹</translation>
    </message>
    <message>
        <source>&amp;Open</source>
        <translation>打开(&amp;O)</translation>
    </message>
    <message>
        <source>&amp;Presets folder</source>
        <translation>预设文件夹(&amp;P)</translation>
    </message>
    <message>
        <source>Your own presets, one .toml file each. One with the name of a built-in preset takes its place.</source>
        <translation>您自己的预设，每个为一个 .toml 文件。与内置预设同名的会取代内置预设。</translation>
    </message>
    <message>
        <source>Look</source>
        <translation>外观</translation>
    </message>
    <message>
        <source>As the system</source>
        <translation>跟随系统</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>浅色</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>深色</translation>
    </message>
    <message>
        <source>&amp;Theme</source>
        <translation>主题(&amp;T)</translation>
    </message>
    <message>
        <source>&amp;Language</source>
        <translation>语言(&amp;L)</translation>
    </message>
    <message>
        <source>When runs train</source>
        <translation>训练时间</translation>
    </message>
    <message>
        <source>Train only in these ho&amp;urs</source>
        <translation>仅在以下时段训练(&amp;U)</translation>
    </message>
    <message>
        <source>Fro&amp;m</source>
        <translation>从(&amp;M)</translation>
    </message>
    <message>
        <source>u&amp;ntil</source>
        <translation>到(&amp;N)</translation>
    </message>
    <message>
        <source>Pause while another program needs the &amp;GPU&apos;s memory</source>
        <translation>其他程序需要显存时暂停(&amp;G)</translation>
    </message>
    <message>
        <source>Start runs of the &amp;queue by themselves, one after another</source>
        <translation>自动依次启动队列中的运行(&amp;Q)</translation>
    </message>
    <message>
        <source>Off, runs wait in the queue until it is switched on. A run that you start yourself starts in any case. All of this is done while this app is open.</source>
        <translation>关闭时，运行在队列中等待，直到重新打开。您手动启动的运行始终会启动。以上功能仅在本应用打开时有效。</translation>
    </message>
    <message>
        <source>Notifications</source>
        <translation>通知</translation>
    </message>
    <message>
        <source>Tell me &amp;when a run has ended</source>
        <translation>运行结束时通知我(&amp;W)</translation>
    </message>
    <message>
        <source>On the desktop, also of a run that fails or waits for room on the disk. The window says the same.</source>
        <translation>显示桌面通知；运行失败或等待磁盘空间时也会通知。窗口中会显示同样的内容。</translation>
    </message>
    <message>
        <source>A change takes effect at the next start of Ferry.</source>
        <translation>更改在下次启动 Ferry 时生效。</translation>
    </message>
    <message>
        <source>Both times are the same: runs train at any hour.</source>
        <translation>两个时间相同：运行可在任何时间训练。</translation>
    </message>
    <message>
        <source>Runs train from %1 until %2 and are paused at other times.</source>
        <translation>运行在 %1 到 %2 之间训练，其他时间暂停。</translation>
    </message>
    <message>
        <source>Runs train from %1 until %2 of the next day and are paused at other times.</source>
        <translation>运行在 %1 到次日 %2 之间训练，其他时间暂停。</translation>
    </message>
    <message>
        <source>Give the whole path, from / on. The folder is as before.</source>
        <translation>请给出以 / 开头的完整路径。文件夹未更改。</translation>
    </message>
    <message>
        <source>Changes are kept at once.</source>
        <translation>更改会立即保存。</translation>
    </message>
    <message>
        <source>A game or another program gets the card. The run is resumed when it has ended; at most one step is computed again.</source>
        <translation>显卡让给游戏或其他程序。该程序结束后运行会继续；最多重新计算一步。</translation>
    </message>
    <message>
        <source>Changed: takes effect at the next start of Ferry. Runs continue when it is closed.</source>
        <translation>已更改：下次启动 Ferry 时生效。关闭应用后运行会继续。</translation>
    </message>
    <message>
        <source>Off: runs train at any hour.</source>
        <translation>关闭：运行在任何时间都可训练。</translation>
    </message>
</context>
<context>
    <name>ferry::gui::SmoothingBox</name>
    <message>
        <source>S&amp;moothing</source>
        <translation>平滑(&amp;M)</translation>
    </message>
    <message>
        <source>Smoothing of curves, in percent</source>
        <translation>曲线的平滑程度（百分比）</translation>
    </message>
    <message>
        <source>How much of each point comes from the points before it. 0 shows the values alone.</source>
        <translation>每个点受之前各点影响的程度。0 只显示原始值。</translation>
    </message>
</context>
<context>
    <name>ferry::gui::StackedBars</name>
    <message>
        <source>%1: %2 %3, %4 % of it</source>
        <translation>%1：%2 %3，占 %4 %</translation>
    </message>
</context>
<context>
    <name>ferry::gui::StartPage</name>
    <message>
        <source>Train a model of your own</source>
        <translation>训练您自己的模型</translation>
    </message>
    <message>
        <source>This machine</source>
        <translation>本机</translation>
    </message>
    <message>
        <source>GPU</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>内存</translation>
    </message>
    <message>
        <source>Processor</source>
        <translation>处理器</translation>
    </message>
    <message>
        <source>Disk</source>
        <translation>磁盘</translation>
    </message>
    <message>
        <source>Looking at this machine...</source>
        <translation>正在检查本机...</translation>
    </message>
    <message>
        <source>&amp;Check everything</source>
        <translation>检查全部(&amp;C)</translation>
    </message>
    <message>
        <source>1. Choose what it learns</source>
        <translation>1. 选择学习内容</translation>
    </message>
    <message>
        <source>Topics, moods, kinds of requests: a label for each text. Sample texts are built in.</source>
        <translation>主题、情感、请求类型：为每段文本给出一个标签。已内置示例文本。</translation>
    </message>
    <message>
        <source>A language model learns to write like a text: Romeo and Juliet where its package is here, or a text of yours.</source>
        <translation>语言模型学习像某篇文本那样写作：若已安装相应软件包，则为《罗密欧与朱丽叶》，否则为您自己的文本。</translation>
    </message>
    <message>
        <source>My &amp;own data</source>
        <translation>我的数据(&amp;O)</translation>
    </message>
    <message>
        <source>A table (.csv, .tsv, .jsonl, .parquet) with texts and labels, or a folder with one sub-folder for each label.</source>
        <translation>含有文本和标签的表格（.csv、.tsv、.jsonl、.parquet），或每个标签一个子文件夹的文件夹。</translation>
    </message>
    <message>
        <source>2. See that it fits</source>
        <translation>2. 确认放得下</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>&amp;Model</source>
        <translation>模型(&amp;M)</translation>
    </message>
    <message>
        <source>Data</source>
        <translation>数据</translation>
    </message>
    <message>
        <source>Choose f&amp;ile...</source>
        <translation>选择文件(&amp;I)...</translation>
    </message>
    <message>
        <source>Choose fo&amp;lder...</source>
        <translation>选择文件夹(&amp;L)...</translation>
    </message>
    <message>
        <source>Plan</source>
        <translation>方案</translation>
    </message>
    <message>
        <source>3. Start</source>
        <translation>3. 开始</translation>
    </message>
    <message>
        <source>&amp;Start training</source>
        <translation>开始训练(&amp;S)</translation>
    </message>
    <message>
        <source>All s&amp;ettings...</source>
        <translation>所有设置(&amp;E)...</translation>
    </message>
    <message>
        <source>What comes then</source>
        <translation>接下来</translation>
    </message>
    <message>
        <source>Watch it learn</source>
        <translation>观察学习过程</translation>
    </message>
    <message>
        <source>Pause it for a game</source>
        <translation>为游戏暂停</translation>
    </message>
    <message>
        <source>Use what it learnt</source>
        <translation>使用训练成果</translation>
    </message>
    <message>
        <source>Try it asks the model. Export writes a folder that transformers and other programs load.</source>
        <translation>“试用”页可向模型提问。“导出”页会写出一个文件夹，供 transformers 和其他程序加载。</translation>
    </message>
    <message>
        <source>none that Ferry can use: the processor trains</source>
        <translation>没有 Ferry 可用的 GPU：将用处理器训练</translation>
    </message>
    <message>
        <source>Ferry can train here.</source>
        <translation>Ferry 可以在本机训练。</translation>
    </message>
    <message>
        <source>Ferry cannot train here yet.</source>
        <translation>Ferry 尚不能在本机训练。</translation>
    </message>
    <message>
        <source>%1. %2</source>
        <translation>%1. %2</translation>
    </message>
    <message>
        <source>Folder of texts</source>
        <translation>文本文件夹</translation>
    </message>
    <message>
        <source>Folder with a sub-folder for each label</source>
        <translation>每个标签一个子文件夹的文件夹</translation>
    </message>
    <message>
        <source>Your data</source>
        <translation>您的数据</translation>
    </message>
    <message>
        <source>Data (*.csv *.tsv *.jsonl *.parquet *.arrow *.conll *.txt);;All files (*)</source>
        <translation>数据 (*.csv *.tsv *.jsonl *.parquet *.arrow *.conll *.txt);;所有文件 (*)</translation>
    </message>
    <message>
        <source>%1 (preset %2)</source>
        <translation>%1（预设 %2）</translation>
    </message>
    <message>
        <source>Choose a file or a folder.</source>
        <translation>请选择文件或文件夹。</translation>
    </message>
    <message>
        <source>Reading the data and planning...</source>
        <translation>正在读取数据并规划...</translation>
    </message>
    <message>
        <source>The run is being started.</source>
        <translation>正在启动运行。</translation>
    </message>
    <message>
        <source>There is no model for it.</source>
        <translation>没有可用的模型。</translation>
    </message>
    <message>
        <source>There is no plan yet.</source>
        <translation>还没有方案。</translation>
    </message>
    <message>
        <source>It does not fit.</source>
        <translation>放不下。</translation>
    </message>
    <message>
        <source>Starting...</source>
        <translation>正在启动...</translation>
    </message>
    <message>
        <source>Classify &amp;texts</source>
        <translation>文本分类(&amp;T)</translation>
    </message>
    <message>
        <source>Continue te&amp;xts</source>
        <translation>续写文本(&amp;X)</translation>
    </message>
    <message>
        <source>Choose a model folder...</source>
        <translation>选择模型文件夹...</translation>
    </message>
    <message>
        <source>Folder of a model</source>
        <translation>模型文件夹</translation>
    </message>
    <message>
        <source>Text column</source>
        <translation>文本列</translation>
    </message>
    <message>
        <source>Label column</source>
        <translation>标签列</translation>
    </message>
    <message>
        <source>%1 is no model for this.</source>
        <translation>%1 不是适用的模型。</translation>
    </message>
    <message>
        <source>Live shows the loss, the speed, the time left and where the memory goes. You may close this window: the run continues.</source>
        <translation>“实时”显示损失、速度、剩余时间以及内存的去向。可以关闭此窗口：运行会继续。</translation>
    </message>
    <message>
        <source>Pause gives the GPU back at once, Resume continues from the same step. A run that was cut off continues from its last checkpoint.</source>
        <translation>“暂停”立即让出 GPU，“继续”从同一步接着进行。被中断的运行会从最后一个检查点继续。</translation>
    </message>
    <message>
        <source>found by its name</source>
        <translation>按名称查找</translation>
    </message>
    <message>
        <source>none on this machine</source>
        <translation>本机没有</translation>
    </message>
    <message>
        <source>No sample text is on this machine. Choose a .txt file of yours.</source>
        <translation>本机没有示例文本。请选择您自己的 .txt 文件。</translation>
    </message>
    <message>
        <source>Reading what this machine has.</source>
        <translation>正在读取本机信息。</translation>
    </message>
    <message>
        <source>Ferry fine-tunes transformers, also those that do not fit the GPU. Your texts and models stay on this machine.</source>
        <translation>Ferry 可微调 Transformer 模型，包括显存放不下的模型。您的文本和模型都留在本机。</translation>
    </message>
    <message>
        <source>&amp;Download a model...</source>
        <translation>下载模型(&amp;D)...</translation>
    </message>
    <message>
        <source>ORGANISATION/NAME</source>
        <translation>组织/名称</translation>
    </message>
    <message>
        <source>&amp;Name on the hub</source>
        <translation>Hub 上的名称(&amp;N)</translation>
    </message>
    <message>
        <source>No model for this is on this machine yet. Download one by its name: the one below is small and good to begin with. Or choose the folder of a model that you have.</source>
        <translation>本机还没有适用的模型。可按名称下载：下面这个模型很小，适合入门。也可以选择您已有模型的文件夹。</translation>
    </message>
    <message>
        <source>The model that came cannot be trained for this.</source>
        <translation>下载的模型不能用于此任务。</translation>
    </message>
</context>
<context>
    <name>ferry::gui::StepList</name>
    <message numerus="yes">
        <source>○ %n to do</source>
        <translation>
            <numerusform>○ %n 项待完成</numerusform>
        </translation>
    </message>
    <message>
        <source>Steps</source>
        <translation>步数</translation>
    </message>
    <message>
        <source>%1  %2</source>
        <translation>%1  %2</translation>
    </message>
    <message>
        <source>%1, %2</source>
        <translation>%1，%2</translation>
    </message>
    <message numerus="yes">
        <source>⚠ %n to fix</source>
        <translation>
            <numerusform>⚠ %n 处需修正</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ferry::gui::Transcript</name>
    <message>
        <source>What you ask and what the model answers appears here.</source>
        <translation>您的提问和模型的回答显示在这里。</translation>
    </message>
    <message>
        <source>You</source>
        <translation>您</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
</context>
<context>
    <name>ferry::gui::TryItPage</name>
    <message>
        <source>Try a model</source>
        <translation>试用模型</translation>
    </message>
    <message>
        <source>&amp;Text</source>
        <translation>文本(&amp;T)</translation>
    </message>
    <message>
        <source>As&amp;k</source>
        <translation>提问(&amp;K)</translation>
    </message>
    <message>
        <source>&amp;Cancel</source>
        <translation>取消(&amp;C)</translation>
    </message>
    <message>
        <source>The model answers</source>
        <translation>模型的回答</translation>
    </message>
    <message>
        <source> tokens</source>
        <translation> 个词元</translation>
    </message>
    <message>
        <source>0 takes the likeliest token each time. Higher values take more chances.</source>
        <translation>0 每次都取可能性最大的词元。值越高，结果越随机。</translation>
    </message>
    <message>
        <source>all</source>
        <translation>全部</translation>
    </message>
    <message>
        <source>Draws among so many of the likeliest tokens.</source>
        <translation>从可能性最大的这么多个词元中抽取。</translation>
    </message>
    <message>
        <source>Draws among the likeliest tokens whose shares add up to this.</source>
        <translation>从概率之和达到此值的最可能词元中抽取。</translation>
    </message>
    <message>
        <source>The same seed draws the same text again.</source>
        <translation>相同的种子会抽取出相同的文本。</translation>
    </message>
    <message>
        <source>none</source>
        <translation>无</translation>
    </message>
    <message>
        <source>Texts that end it, with commas between them. \n stands for the end of a line.</source>
        <translation>遇到即结束的文本，用逗号分隔。\n 表示换行。</translation>
    </message>
    <message>
        <source>&amp;Length</source>
        <translation>长度(&amp;L)</translation>
    </message>
    <message>
        <source>&amp;Temperature</source>
        <translation>温度(&amp;T)</translation>
    </message>
    <message>
        <source>Top-&amp;k</source>
        <translation>Top-k(&amp;K)</translation>
    </message>
    <message>
        <source>Top-&amp;p</source>
        <translation>Top-p(&amp;P)</translation>
    </message>
    <message>
        <source>S&amp;eed</source>
        <translation>种子(&amp;E)</translation>
    </message>
    <message>
        <source>St&amp;op at</source>
        <translation>停止于(&amp;O)</translation>
    </message>
    <message>
        <source>The answer appears here.</source>
        <translation>回答会显示在这里。</translation>
    </message>
    <message>
        <source>Classes and how sure the model is of each</source>
        <translation>各类别及模型的确信程度</translation>
    </message>
    <message>
        <source>Class</source>
        <translation>类别</translation>
    </message>
    <message>
        <source>Confidence</source>
        <translation>置信度</translation>
    </message>
    <message>
        <source>The answer in its text</source>
        <translation>文本中的答案</translation>
    </message>
    <message>
        <source>Hi&amp;story</source>
        <translation>历史记录(&amp;S)</translation>
    </message>
    <message>
        <source>What was asked before</source>
        <translation>之前的提问</translation>
    </message>
    <message>
        <source>Cop&amp;y answer</source>
        <translation>复制回答(&amp;Y)</translation>
    </message>
    <message>
        <source>&amp;Use text again</source>
        <translation>再次使用文本(&amp;U)</translation>
    </message>
    <message>
        <source>Ask the model</source>
        <translation>向模型提问</translation>
    </message>
    <message>
        <source>Copy the answer</source>
        <translation>复制回答</translation>
    </message>
    <message>
        <source>Use the text again</source>
        <translation>再次使用该文本</translation>
    </message>
    <message>
        <source>&amp;Question</source>
        <translation>问题(&amp;Q)</translation>
    </message>
    <message>
        <source>Te&amp;xt that answers it</source>
        <translation>含有答案的文本(&amp;X)</translation>
    </message>
    <message>
        <source>&amp;Begin with</source>
        <translation>开头(&amp;B)</translation>
    </message>
    <message>
        <source>Second te&amp;xt</source>
        <translation>第二段文本(&amp;X)</translation>
    </message>
    <message>
        <source>Choose a run or a model above.</source>
        <translation>请在上方选择运行或模型。</translation>
    </message>
    <message>
        <source>Choose a run or a model first.</source>
        <translation>请先选择运行或模型。</translation>
    </message>
    <message>
        <source>Type a text first.</source>
        <translation>请先输入文本。</translation>
    </message>
    <message>
        <source>Both texts are needed.</source>
        <translation>两段文本都需要填写。</translation>
    </message>
    <message>
        <source>The text is too long to be asked here. For long texts, use ferry predict with a file.</source>
        <translation>文本太长，无法在此提问。长文本请用 ferry predict 处理文件。</translation>
    </message>
    <message>
        <source>Cancelled.</source>
        <translation>已取消。</translation>
    </message>
    <message>
        <source>The answer is not understood: %1</source>
        <translation>无法解析回答：%1</translation>
    </message>
    <message>
        <source>ferry gave no answer.</source>
        <translation>ferry 没有给出回答。</translation>
    </message>
    <message>
        <source>Answered in %1 s.</source>
        <translation>回答用时 %1 秒。</translation>
    </message>
    <message numerus="yes">
        <source>%n found</source>
        <translation>
            <numerusform>找到 %n 处</numerusform>
        </translation>
    </message>
    <message>
        <source>%1 (chosen)</source>
        <translation>%1（已选）</translation>
    </message>
    <message>
        <source>not a number</source>
        <translation>非数值</translation>
    </message>
    <message>
        <source>%1 %</source>
        <translation>%1 %</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <translation>%1：%2</translation>
    </message>
    <message>
        <source> [%1]</source>
        <translation> [%1]</translation>
    </message>
    <message>
        <source> [%1 %2]</source>
        <translation> [%1 %2]</translation>
    </message>
    <message>
        <source>%1
%2</source>
        <translation>%1
%2</translation>
    </message>
    <message>
        <source>The answer is in the clipboard.</source>
        <translation>回答已复制到剪贴板。</translation>
    </message>
    <message>
        <source>Co&amp;ntinue</source>
        <translation>续写(&amp;N)</translation>
    </message>
    <message>
        <source>The model is being read.</source>
        <translation>正在读取模型。</translation>
    </message>
    <message>
        <source>Type a text for the model here.</source>
        <translation>在此输入给模型的文本。</translation>
    </message>
    <message>
        <source>Ask a finished run, a checkpoint or a folder.</source>
        <translation>向已完成的运行、检查点或模型文件夹提问。</translation>
    </message>
    <message>
        <source>The model&apos;s answers appear here.</source>
        <translation>模型的回答显示在这里。</translation>
    </message>
    <message>
        <source>The model answers with a number.</source>
        <translation>模型以一个数值作答。</translation>
    </message>
    <message numerus="yes">
        <source>The model says which of its %n label(s) suit the text: %1. How sure it is of each appears here.</source>
        <translation>
            <numerusform>模型在 %n 个标签中指出适合文本的标签：%1。各标签的置信度显示在这里。</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>The model chooses one of its %n label(s): %1. How sure it is of each appears here.</source>
        <translation>
            <numerusform>模型在 %n 个标签中选择一个：%1。各标签的置信度显示在这里。</numerusform>
        </translation>
    </message>
    <message>
        <source>The model marks words of the text: %1. The marked text appears here.</source>
        <translation>模型标注文本中的词：%1。标注后的文本显示在这里。</translation>
    </message>
    <message>
        <source>The model looks for the answer in the text, and marks it here.</source>
        <translation>模型在文本中寻找答案，并在这里标出。</translation>
    </message>
    <message>
        <source>The text appears here as the model writes it. Esc stops it.</source>
        <translation>模型写出的文本会逐步显示在这里。按 Esc 键停止。</translation>
    </message>
    <message>
        <source>Answer</source>
        <translation>回答</translation>
    </message>
    <message>
        <source>What you ask is listed here with its answer. Choose an entry to see it again.</source>
        <translation>您的提问和回答会列在这里。选择一项即可再次查看。</translation>
    </message>
    <message>
        <source>How the model is asked</source>
        <translation>向模型提问的方式</translation>
    </message>
    <message>
        <source>Chat</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>Continue a text</source>
        <translation>续写文本</translation>
    </message>
</context>
<context>
    <name>options</name>
    <message>
        <source>0 takes the likeliest token each time; above, tokens are drawn by their probabilities, which a lower value sharpens and a higher one flattens. auto is 1 with top_k or top_p, else 0.</source>
        <translation>0 每次都取可能性最大的词元；大于 0 时按概率抽取词元，值越低分布越尖锐，越高越平缓。设置了 top_k 或 top_p 时 auto 为 1，否则为 0。</translation>
    </message>
    <message>
        <source>A file for a Chrome trace (chrome://tracing, Perfetto) of the first ten steps: when each block was computed, copied and updated. auto writes none. Costs some microseconds an action in those steps.</source>
        <translation>前十步的 Chrome 跟踪文件（用 chrome://tracing 或 Perfetto 打开）：每个块何时计算、复制和更新。auto 不写入。在这些步中，每个动作会多花几微秒。</translation>
    </message>
    <message>
        <source>A file for a Chrome trace of two steps as they are expected to run: when each block is computed, copied and updated. auto writes none.</source>
        <translation>两步预计运行情况的 Chrome 跟踪文件：每个块何时计算、复制和更新。auto 不写入。</translation>
    </message>
    <message>
        <source>Accumulation order</source>
        <translation>累积顺序</translation>
    </message>
    <message>
        <source>Activations</source>
        <translation>激活值</translation>
    </message>
    <message>
        <source>Adam beta 1</source>
        <translation>Adam beta 1</translation>
    </message>
    <message>
        <source>Adam beta 2</source>
        <translation>Adam beta 2</translation>
    </message>
    <message>
        <source>Adam epsilon</source>
        <translation>Adam epsilon</translation>
    </message>
    <message>
        <source>Added to AdamW&apos;s denominator; larger damps steps of tensors with tiny gradients.</source>
        <translation>加到 AdamW 分母上的值；越大，对梯度极小的张量的更新抑制越强。</translation>
    </message>
    <message>
        <source>Attention dropout</source>
        <translation>注意力丢弃率</translation>
    </message>
    <message>
        <source>Batch and schedule</source>
        <translation>批次与调度</translation>
    </message>
    <message>
        <source>Batch size</source>
        <translation>批次大小</translation>
    </message>
    <message>
        <source>Beginnings of texts with which a training of task = causal-lm goes on, to show what it learns: a text, or a file with one a line (.txt) or a row (.jsonl, .csv, ...: column text or prompt). \n stands for the end of a line. The samples go to the run&apos;s samples/ and, shortened, to the terminal; they change nothing else. Empty: none.</source>
        <translation>task = causal-lm 的训练用来续写的文本开头，以展示学习效果：可以是一段文本，也可以是每行（.txt）或每条记录（.jsonl、.csv 等：text 或 prompt 列）一个开头的文件。\n 表示换行。采样文本写入运行的 samples/，并以缩略形式显示在终端；除此之外没有任何影响。留空则不采样。</translation>
    </message>
    <message>
        <source>By how much a metric must improve to count for early_stopping_patience; more stops sooner on a plateau.</source>
        <translation>指标至少要改善多少，才算作 early_stopping_patience 所说的改善；值越大，进入平台期后停得越早。</translation>
    </message>
    <message>
        <source>Checkpoints kept</source>
        <translation>保留的检查点数</translation>
    </message>
    <message>
        <source>Column (or JSON key) that holds the label, by name or by number from 0. Several, as in a,b,c, hold 0 or 1 each: multi-label, and each is a label.</source>
        <translation>存放标签的列（或 JSON 键），可用列名或从 0 开始的列号。若写多列，如 a,b,c，则每列为 0 或 1：即多标签，每列是一个标签。</translation>
    </message>
    <message>
        <source>Column delimiter</source>
        <translation>列分隔符</translation>
    </message>
    <message>
        <source>Column that holds a second text, for tasks on pairs; empty for none.</source>
        <translation>存放第二段文本的列，用于文本对任务；留空表示没有。</translation>
    </message>
    <message>
        <source>Curves for TensorBoard in the run&apos;s tensorboard/; none leaves metrics.jsonl alone, which is always written.</source>
        <translation>在运行的 tensorboard/ 中写入供 TensorBoard 使用的曲线；none 则只有 metrics.jsonl，该文件始终会写入。</translation>
    </message>
    <message>
        <source>Curves for</source>
        <translation>曲线输出到</translation>
    </message>
    <message>
        <source>Data for evaluation, of the same form as dataset; takes the place of eval_fraction.</source>
        <translation>用于评估的数据，格式与 dataset 相同；会取代 eval_fraction。</translation>
    </message>
    <message>
        <source>Data format</source>
        <translation>数据格式</translation>
    </message>
    <message>
        <source>Decay steps</source>
        <translation>衰减步数</translation>
    </message>
    <message>
        <source>Device</source>
        <translation>设备</translation>
    </message>
    <message>
        <source>Directory or name of the model whose tokenizer a model from scratch (config_name) takes; empty for the directory of its config.json.</source>
        <translation>从头训练的模型（config_name）所用分词器的模型目录或名称；留空则用其 config.json 所在目录。</translation>
    </message>
    <message>
        <source>Directory where tokens are kept, so that texts are tokenized once and need not fit into memory. auto keeps those of 16 MiB of files or more, in $XDG_CACHE_HOME/ferry/tokens (~/.cache); off holds all tokens in memory.</source>
        <translation>保存词元的目录，这样文本只需分词一次，也不必全部放进内存。auto 会保存文件总量达到 16 MiB 及以上时的词元，位置为 $XDG_CACHE_HOME/ferry/tokens（~/.cache）；off 则将所有词元放在内存中。</translation>
    </message>
    <message>
        <source>Dropout after each sub-layer; auto is what the model&apos;s config.json says. Its masks are drawn again in the backward, and cost no memory.</source>
        <translation>每个子层之后的丢弃率；auto 采用模型 config.json 中的值。其掩码在反向传播时重新生成，不占内存。</translation>
    </message>
    <message>
        <source>Dropout of attention weights; auto is what the model&apos;s config.json says.</source>
        <translation>注意力权重的丢弃率；auto 采用模型 config.json 中的值。</translation>
    </message>
    <message>
        <source>Early stopping patience</source>
        <translation>早停耐心值</translation>
    </message>
    <message>
        <source>Early stopping threshold</source>
        <translation>早停阈值</translation>
    </message>
    <message>
        <source>Encoding of the data. utf8_or_latin1 reads a file that is not UTF-8 as Latin-1, which never fails and turns other encodings into wrong letters.</source>
        <translation>数据的编码。utf8_or_latin1 会把不是 UTF-8 的文件按 Latin-1 读取，这不会失败，但会把其他编码读成错误的字符。</translation>
    </message>
    <message>
        <source>End after this much time in training steps of the whole run, resumed parts included: it evaluates, saves and finishes as at its last step. The schedule is not shortened, so a run that ends early has not seen its lowest rates; 0 sets no limit.</source>
        <translation>整个运行（包括恢复后的部分）用于训练步的时间达到此值后结束：与到达最后一步时一样，进行评估、保存和收尾。学习率调度不会因此缩短，所以提前结束的运行没有经历最低的学习率；0 表示不限制。</translation>
    </message>
    <message>
        <source>Epochs</source>
        <translation>轮数</translation>
    </message>
    <message>
        <source>Evaluate at the end of each epoch or every eval_steps, where there is data for it, and once at the end. Training waits meanwhile; no leaves more time to it.</source>
        <translation>在每轮结束时或每隔 eval_steps 评估一次（有评估数据时），并在结束时再评估一次。评估期间训练会等待；no 可把更多时间留给训练。</translation>
    </message>
    <message>
        <source>Evaluate every</source>
        <translation>评估间隔</translation>
    </message>
    <message>
        <source>Evaluation data</source>
        <translation>评估数据</translation>
    </message>
    <message>
        <source>Exponent of the polynomial schedule: 1 is linear, more falls sooner.</source>
        <translation>polynomial 调度的指数：1 为线性，越大下降越早。</translation>
    </message>
    <message>
        <source>Factor of each step of the exponential schedule; 0.95 halves the rate every 14 steps.</source>
        <translation>exponential 调度每步的因子；0.95 会使学习率每 14 步减半。</translation>
    </message>
    <message>
        <source>Factor x of the learning rate from layer to layer towards the input: layer i = 0, 1, ... of n has learning_rate * x^(n - i), the head the whole, the embeddings x^(n + 1) (ULMFiT&apos;s discriminative rates, counted as BEiT does). 1 is the same for all; 0.8 to 0.95 keeps more of what was pre-trained.</source>
        <translation>学习率从一层到靠近输入的下一层的因子 x：n 层中的第 i = 0, 1, ... 层为 learning_rate * x^(n - i)，头部为完整学习率，嵌入层为 x^(n + 1)（即 ULMFiT 的判别式学习率，按 BEiT 的方式计层）。1 表示各层相同；0.8 到 0.95 可保留更多预训练所得。</translation>
    </message>
    <message>
        <source>File of the simulated trace</source>
        <translation>模拟跟踪文件</translation>
    </message>
    <message>
        <source>File of the trace</source>
        <translation>跟踪文件</translation>
    </message>
    <message>
        <source>Folder with one sub-folder of text files per label, or a .tsv, .csv, .json, .jsonl, .parquet, .arrow, .conll, .txt or .md file; or several files of one form: a pattern (&apos;data/*.jsonl&apos;), or names with commas between them; or a data set of the hub (ORGANISATION/NAME:CONFIG:SPLIT, the last two where it has several).</source>
        <translation>每个标签一个子文件夹（内含文本文件）的文件夹，或 .tsv、.csv、.json、.jsonl、.parquet、.arrow、.conll、.txt、.md 文件；也可以是多个同格式的文件：写成通配模式（&apos;data/*.jsonl&apos;）或用逗号分隔的文件名；还可以是 Hub 上的数据集（ORGANISATION/NAME:CONFIG:SPLIT，后两部分可省略）。</translation>
    </message>
    <message>
        <source>For experiments: regions of device memory that hold one block&apos;s weights each. More hide transfers better and leave less memory for activations.</source>
        <translation>用于实验：设备内存中各存放一个块的权重的区域数。越多越能掩盖传输，留给激活值的内存也越少。</translation>
    </message>
    <message>
        <source>For experiments: the CPU updates parameters while the device computes. false shows what that saves. Never changes the result.</source>
        <translation>用于实验：设备计算的同时由 CPU 更新参数。设为 false 可看出这样节省了多少时间。不影响结果。</translation>
    </message>
    <message>
        <source>For experiments: the inputs of layers, which the backward pass reads again, stay on the device or are sent to host memory and fetched back (host). auto takes the host only where nothing fits otherwise. Never changes the result.</source>
        <translation>用于实验：反向传播会再次读取的各层输入，是留在设备上，还是送到主机内存再取回（host）。auto 仅在其他方式都放不下时使用主机。不影响结果。</translation>
    </message>
    <message>
        <source>For experiments: weights and states all on the device (resident), all in host memory (host), or all states on the drives of nvme_path (nvme). auto takes the fastest that fits. Never changes the result.</source>
        <translation>用于实验：权重和状态全部放在设备上（resident）、全部放在主机内存中（host），或状态全部放在 nvme_path 的硬盘上（nvme）。auto 取放得下且最快的一种。不影响结果。</translation>
    </message>
    <message>
        <source>For experiments: what happens to tensors saved for the backward. keep is fastest, selective makes each layer&apos;s largest again (of BERT two fifths of them, for a tenth more computing), recompute all of them (a third more), host costs transfers. auto keeps as much as fits. Never changes the result.</source>
        <translation>用于实验：如何处理为反向传播保存的张量。keep 最快；selective 会重新计算每层中最大的张量（对 BERT 约为五分之二，计算量多十分之一）；recompute 全部重新计算（计算量多三分之一）；host 需要传输。auto 在放得下的前提下尽量多保留。不影响结果。</translation>
    </message>
    <message>
        <source>Form of the data; auto goes by the directory or the file&apos;s ending.</source>
        <translation>数据的格式；auto 根据目录或文件扩展名判断。</translation>
    </message>
    <message>
        <source>Frozen parameters</source>
        <translation>冻结的参数</translation>
    </message>
    <message>
        <source>GPU memory that may be taken, counted as the driver counts: other programs on the card are in it; more than the card has counts as what it has. What does not fit streams from host memory; auto takes what is free but a margin.</source>
        <translation>可占用的显存，按驱动的口径计算：包括显卡上其他程序的占用；超过显卡容量时按显卡容量计。放不下的部分从主机内存流式传输；auto 使用全部空闲显存，但留出余量。</translation>
    </message>
    <message>
        <source>GPU memory</source>
        <translation>显存</translation>
    </message>
    <message>
        <source>Generation</source>
        <translation>生成</translation>
    </message>
    <message>
        <source>Go on with a run: its directory (its last complete checkpoint is taken), or one of its checkpoint-N. Settings are the run&apos;s own; what is given beside it changes them. The bits are those of a run that never stopped.</source>
        <translation>继续一个运行：给出其目录（取最新的完整检查点），或其中的某个 checkpoint-N。设置沿用该运行自身的设置；另外给出的设置会更改它们。结果与从未中断的运行逐位相同。</translation>
    </message>
    <message>
        <source>Gradients with a larger norm are scaled down to it; 0 switches clipping off: then the CPU updates weights while the backward still runs, which is faster where they live in host memory, but a pause waits for the end of the step.</source>
        <translation>范数超过此值的梯度会按比例缩小到此值；0 表示关闭裁剪：这样 CPU 可在反向传播还在进行时就更新权重，权重位于主机内存时更快，但暂停要等到该步结束。</translation>
    </message>
    <message>
        <source>Header line</source>
        <translation>标题行</translation>
    </message>
    <message>
        <source>Held-out share</source>
        <translation>留出比例</translation>
    </message>
    <message>
        <source>Hidden dropout</source>
        <translation>隐藏层丢弃率</translation>
    </message>
    <message>
        <source>Pinned memory</source>
        <translation>锁页内存</translation>
    </message>
    <message>
        <source>bytes, or 512MiB</source>
        <translation>字节数，或 512MiB</translation>
    </message>
    <message>
        <source>Host memory that may be pinned for copies to and from the GPU; auto pins as much as the system allows. What more is copied goes through a ring of pinned slots, which takes longer. Never changes the result.</source>
        <translation>可为与 GPU 之间的复制锁页的主机内存；auto 锁定系统允许的全部。其余的复制经由一圈锁页缓冲进行，耗时更长。不会改变结果。</translation>
    </message>
    <message>
        <source>Host memory Ferry may take; auto reads free memory and the cgroup&apos;s limit, and keeps a margin.</source>
        <translation>Ferry 可占用的主机内存；auto 读取空闲内存和 cgroup 限制，并留出余量。</translation>
    </message>
    <message>
        <source>Host memory</source>
        <translation>主机内存</translation>
    </message>
    <message>
        <source>How labels are read and which loss is used; auto decides by the data: one label a sample is single label.</source>
        <translation>如何读取标签以及使用哪种损失；auto 根据数据决定：每个样本一个标签时为单标签。</translation>
    </message>
    <message>
        <source>How often cosine_with_restarts falls from the whole learning rate; more falls leave each less time to settle.</source>
        <translation>cosine_with_restarts 从完整学习率下降的次数；次数越多，每次收敛的时间越短。</translation>
    </message>
    <message>
        <source>How the learning rate goes on after warm-up. linear and cosine end at zero and suit fine-tuning; wsd stays and falls over the last lr_decay_steps, so a run can be made longer; inverse_sqrt and noam never end. As transformers (noam, exponential: BMTrain) defines them.</source>
        <translation>预热之后学习率如何变化。linear 和 cosine 最终降到零，适合微调；wsd 先保持不变，再在最后 lr_decay_steps 步下降，因此可以延长运行；inverse_sqrt 和 noam 没有终点。定义与 transformers 一致（noam、exponential 与 BMTrain 一致）。</translation>
    </message>
    <message>
        <source>Hugging Face model directory, a run directory (its final/ is taken), or the name of a model of the hub (ORGANISATION/NAME or ORGANISATION/NAME@REVISION), which is fetched where it is not on this machine.</source>
        <translation>Hugging Face 模型目录、运行目录（取其中的 final/），或 Hub 上模型的名称（ORGANISATION/NAME 或 ORGANISATION/NAME@REVISION）；本机没有时会自动下载。</translation>
    </message>
    <message>
        <source>Keep keys and values</source>
        <translation>缓存键和值</translation>
    </message>
    <message>
        <source>Keep the best model</source>
        <translation>保留最佳模型</translation>
    </message>
    <message>
        <source>Keep the keys and values of each token, so that a new one goes through the model alone. false saves their memory and computes the whole text again for each token.</source>
        <translation>保留每个词元的键和值，这样只有新词元需要通过模型。false 可省下这部分内存，但每生成一个词元都要重新计算整段文本。</translation>
    </message>
    <message>
        <source>Kind of labels</source>
        <translation>标签类型</translation>
    </message>
    <message>
        <source>Label column</source>
        <translation>标签列</translation>
    </message>
    <message>
        <source>Label smoothing</source>
        <translation>标签平滑</translation>
    </message>
    <message>
        <source>Larger is better</source>
        <translation>越大越好</translation>
    </message>
    <message>
        <source>Largest gradient norm</source>
        <translation>最大梯度范数</translation>
    </message>
    <message>
        <source>Layer inputs</source>
        <translation>层输入</translation>
    </message>
    <message>
        <source>Layer-wise rate decay</source>
        <translation>逐层学习率衰减</translation>
    </message>
    <message>
        <source>Learning rate (lr), factor of the learning rate (factor) and weight decay (decay) of the parameters that a pattern names (see freeze): &apos;classifier.*:lr=1e-4,decay=0; bert.embeddings.*:factor=0.1&apos;. The first pattern that names a parameter counts. The schedule applies to each; lr leaves layerwise_lr_decay out, and decay is for biases and norms too where they are named. In TOML also [[param_groups]] with pattern, learning_rate, lr_factor, weight_decay, at the end of the file.</source>
        <translation>为模式所匹配的参数（模式写法见 freeze）指定学习率（lr）、学习率因子（factor）和权重衰减（decay）：&apos;classifier.*:lr=1e-4,decay=0; bert.embeddings.*:factor=0.1&apos;。参数以第一个匹配到它的模式为准。学习率调度对各组都适用；指定 lr 的组不受 layerwise_lr_decay 影响；decay 对所匹配的偏置和归一化参数同样有效。在 TOML 中也可写成文件末尾的 [[param_groups]]，含 pattern、learning_rate、lr_factor、weight_decay。</translation>
    </message>
    <message>
        <source>Learning rate schedule</source>
        <translation>学习率调度</translation>
    </message>
    <message>
        <source>Learning rate</source>
        <translation>学习率</translation>
    </message>
    <message>
        <source>LibTorch&apos;s threads inside one operation on a CPU. Belongs to what fixes the bits of a run.</source>
        <translation>LibTorch 在 CPU 上单个运算内部使用的线程数。属于决定运行逐位结果的因素。</translation>
    </message>
    <message>
        <source>Likeliest share (top-p)</source>
        <translation>最可能词元的概率和（top-p）</translation>
    </message>
    <message>
        <source>Likeliest tokens (top-k)</source>
        <translation>最可能词元数（top-k）</translation>
    </message>
    <message>
        <source>Log every</source>
        <translation>日志间隔</translation>
    </message>
    <message>
        <source>Longer texts are cut to this many tokens; auto is the model&apos;s limit, at most 2048. Memory and time grow with it, faster than in proportion.</source>
        <translation>更长的文本会截断到这么多词元；auto 为模型的上限，但不超过 2048。内存和时间随之增长，且快于正比。</translation>
    </message>
    <message>
        <source>Longest answer that is looked for (question-answering). Longer answers count as wrong where it is too small; more lets unlikely ones in.</source>
        <translation>要查找的答案的最大长度（question-answering）。太小时，更长的答案会算作错误；越大，越容易混入不太可能的答案。</translation>
    </message>
    <message>
        <source>Longest answer</source>
        <translation>最长答案</translation>
    </message>
    <message>
        <source>Longest text</source>
        <translation>最长文本</translation>
    </message>
    <message>
        <source>Lowest learning rate</source>
        <translation>最低学习率</translation>
    </message>
    <message>
        <source>Machine to plan for</source>
        <translation>规划所针对的机器</translation>
    </message>
    <message>
        <source>Master weights</source>
        <translation>主权重</translation>
    </message>
    <message>
        <source>Metric of the best model</source>
        <translation>最佳模型的指标</translation>
    </message>
    <message>
        <source>Micro-batch size</source>
        <translation>微批次大小</translation>
    </message>
    <message>
        <source>Micro-batches a step</source>
        <translation>每步微批次数</translation>
    </message>
    <message>
        <source>Micro-batches in one step; auto follows from the two batch sizes.</source>
        <translation>一步中的微批次数；auto 由两个批次大小推算。</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>New tokens</source>
        <translation>新词元数</translation>
    </message>
    <message>
        <source>Number type</source>
        <translation>数值类型</translation>
    </message>
    <message>
        <source>Optimizer</source>
        <translation>优化器</translation>
    </message>
    <message>
        <source>Output directory</source>
        <translation>输出目录</translation>
    </message>
    <message>
        <source>Overlap of windows</source>
        <translation>窗口重叠</translation>
    </message>
    <message>
        <source>Pack short texts</source>
        <translation>合并短文本</translation>
    </message>
    <message>
        <source>Parameter groups</source>
        <translation>参数组</translation>
    </message>
    <message>
        <source>Parameters that stay as they are, as patterns over their Hugging Face names separated by commas: &apos;bert.embeddings.*,bert.encoder.layer.[0-3].*&apos; (* any text, ? one character, [0-3] one of these). Below the lowest trained block there is no backward; a frozen parameter has no gradient and no Adam states. Freezing more saves memory and time, and adapts less.</source>
        <translation>保持不变的参数，写成匹配其 Hugging Face 名称的模式，用逗号分隔：&apos;bert.embeddings.*,bert.encoder.layer.[0-3].*&apos;（* 为任意文本，? 为一个字符，[0-3] 为其中之一）。最低的受训块以下不做反向传播；冻结的参数没有梯度，也没有 Adam 状态。冻结越多越省内存和时间，但适应能力越弱。</translation>
    </message>
    <message>
        <source>Passes over the training data, fractions allowed. More learns more and overfits in the end.</source>
        <translation>遍历训练数据的次数，可为小数。越多学得越多，但最终会过拟合。</translation>
    </message>
    <message>
        <source>Placement</source>
        <translation>存放位置</translation>
    </message>
    <message>
        <source>Precision and repeatability</source>
        <translation>精度与可复现性</translation>
    </message>
    <message>
        <source>Prompts of samples</source>
        <translation>采样提示</translation>
    </message>
    <message>
        <source>Put several short texts into a sample, up to max_length tokens (causal-lm, mlm). No text sees another. A step of as many samples then has more tokens, and of equal number.</source>
        <translation>把多段短文本放进一个样本，总长不超过 max_length 个词元（causal-lm、mlm）。各段文本互不可见。这样，样本数相同的一步含有更多词元，且各步词元数相等。</translation>
    </message>
    <message>
        <source>Quotes in a CSV or TSV file. double: a column that begins with a double quote ends with one. none: a quote is a character like any other. auto is double, but takes columns between tabs as they stand where that fails.</source>
        <translation>CSV 或 TSV 文件中的引号。double：以双引号开头的列以双引号结束。none：引号与其他字符无异。auto 为 double，但对制表符分隔的列，若这样读取失败则按原样读取。</translation>
    </message>
    <message>
        <source>Quotes in tables</source>
        <translation>表格中的引号</translation>
    </message>
    <message>
        <source>Resume although what fixes the run&apos;s bits has changed (batch sizes, dtype, seed, data, device, build): the result is then not that of the unchanged run.</source>
        <translation>即使决定运行逐位结果的因素（批次大小、dtype、种子、数据、设备、构建版本）已改变，仍然恢复：这样结果与未改变的运行不同。</translation>
    </message>
    <message>
        <source>Resume with other bits</source>
        <translation>允许恢复后结果不同</translation>
    </message>
    <message>
        <source>Run to resume</source>
        <translation>要恢复的运行</translation>
    </message>
    <message>
        <source>Same bits every time</source>
        <translation>结果逐位一致</translation>
    </message>
    <message>
        <source>Sample every</source>
        <translation>采样间隔</translation>
    </message>
    <message>
        <source>Samples in one optimizer step: the hyper-parameter that changes what is learned. Larger is steadier and wants a larger learning_rate; memory hardly depends on it once a step has several micro-batches. Where only per_device_train_batch_size is given, a step has that many. Of a decoder 16 where nothing is given.</source>
        <translation>优化器每步的样本数：这是会改变学习结果的超参数。越大越稳定，也需要更大的 learning_rate；一步含有多个微批次后，内存几乎不再受其影响。只给出 per_device_train_batch_size 时，一步就是该数。未指定时，解码器为 16。</translation>
    </message>
    <message>
        <source>Samples that go through the model at once (micro-batch). Larger is faster until memory ends; auto lets the planner choose. Given without train_batch_size and gradient_accumulation_steps it is the whole step, as in transformers&apos; Trainer.</source>
        <translation>一次通过模型的样本数（微批次）。在内存够用的范围内，越大越快；auto 由规划程序选择。如果给出它而没有给出 train_batch_size 和 gradient_accumulation_steps，它就是整步的样本数，与 transformers 的 Trainer 相同。</translation>
    </message>
    <message>
        <source>Save every</source>
        <translation>保存间隔</translation>
    </message>
    <message>
        <source>Schedule cycles</source>
        <translation>调度周期数</translation>
    </message>
    <message>
        <source>Schedule decay</source>
        <translation>调度衰减</translation>
    </message>
    <message>
        <source>Schedule power</source>
        <translation>调度幂次</translation>
    </message>
    <message>
        <source>Second text column</source>
        <translation>第二文本列</translation>
    </message>
    <message>
        <source>Seed of new weights, dropout and drawn tokens; the same seed and micro-batch give the same bits.</source>
        <translation>新权重、丢弃和抽取词元所用的种子；相同的种子和微批得到逐位相同的结果。</translation>
    </message>
    <message>
        <source>Seed of the data order</source>
        <translation>数据顺序的种子</translation>
    </message>
    <message>
        <source>Seed of the order of samples and of the held-out share; auto is seed.</source>
        <translation>样本顺序和留出部分的种子；auto 取 seed 的值。</translation>
    </message>
    <message>
        <source>Seed</source>
        <translation>种子</translation>
    </message>
    <message>
        <source>Shape of a new model</source>
        <translation>新模型的结构</translation>
    </message>
    <message>
        <source>Share of dataset that is held out for evaluation, drawn by data_seed. More makes the measured accuracy surer and leaves less to learn from.</source>
        <translation>从 dataset 中留出用于评估的比例，按 data_seed 抽取。越多，测得的准确率越可靠，可供学习的数据越少。</translation>
    </message>
    <message>
        <source>Steps or time (30min) between two checkpoints; auto is every 30 minutes, at most 2 % of the time, and at the end.</source>
        <translation>两个检查点之间的步数或时间（30min）；auto 为每 30 分钟一次，所占时间不超过 2 %，并在结束时保存。</translation>
    </message>
    <message>
        <source>Steps or time (30min) between two evaluations with eval_strategy = steps. More often shows sooner where overfitting begins, and takes more time.</source>
        <translation>eval_strategy = steps 时，两次评估之间的步数或时间（30min）。越频繁，越早看出过拟合从何时开始，但耗时越多。</translation>
    </message>
    <message>
        <source>Steps or time (30min) between two samples of each prompt; before the first step and after the last there are some, too. Training waits meanwhile.</source>
        <translation>每个提示两次采样之间的步数或时间（30min）；第一步之前和最后一步之后也会采样。采样期间训练会等待。</translation>
    </message>
    <message>
        <source>Stop after so many evaluations in a row without a better metric_for_best_model; 0 never does. Few save time, but a plateau may end the run.</source>
        <translation>连续这么多次评估都没有得到更好的 metric_for_best_model 时停止；0 表示从不停止。值小可节省时间，但可能因平台期而结束运行。</translation>
    </message>
    <message>
        <source>Stop after this many optimizer steps, whatever num_train_epochs says; -1 goes by epochs.</source>
        <translation>达到这么多优化器步后停止，不论 num_train_epochs 为何；-1 表示按轮数。</translation>
    </message>
    <message>
        <source>Stop texts</source>
        <translation>停止文本</translation>
    </message>
    <message>
        <source>Task</source>
        <translation>任务</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>温度</translation>
    </message>
    <message>
        <source>Text column</source>
        <translation>文本列</translation>
    </message>
    <message>
        <source>Text encoding</source>
        <translation>文本编码</translation>
    </message>
    <message>
        <source>Texts are pairs</source>
        <translation>文本成对</translation>
    </message>
    <message>
        <source>Texts that end a generation where they come, separated by commas; they are left out of it. \n stands for the end of a line, \t for a tab.</source>
        <translation>出现时即结束生成的文本，用逗号分隔；结果中不包含它们。\n 表示换行，\t 表示制表符。</translation>
    </message>
    <message>
        <source>The last steps of a wsd schedule, in which the rate falls; fewer learn longer at the whole rate and settle less.</source>
        <translation>wsd 调度中学习率下降的最后步数；越少，以完整学习率学习的时间越长，收敛越不充分。</translation>
    </message>
    <message>
        <source>The learning rate climbs from zero over these steps. Longer is safer at a high learning_rate.</source>
        <translation>学习率在这些步内从零升高。learning_rate 较高时，预热越长越稳妥。</translation>
    </message>
    <message>
        <source>The same bits wherever the bytes live and whenever it runs. false may be some percent faster on a GPU.</source>
        <translation>无论字节放在哪里、何时运行，结果都逐位一致。在 GPU 上，false 可能快百分之几。</translation>
    </message>
    <message>
        <source>The texts are pairs, for a model that was trained on pairs: words two by two, or lines of standard input with a tab between both texts.</source>
        <translation>文本成对，用于以文本对训练的模型：每两个词一对，或标准输入中每行两段文本、以制表符分隔。</translation>
    </message>
    <message>
        <source>Threads inside an operation</source>
        <translation>运算内线程数</translation>
    </message>
    <message>
        <source>Threads that update parameters and convert weights. Never changes the result.</source>
        <translation>更新参数和转换权重的线程数。不影响结果。</translation>
    </message>
    <message>
        <source>Token counts of micro-batches</source>
        <translation>微批次的词元数</translation>
    </message>
    <message>
        <source>Tokenizer of a new model</source>
        <translation>新模型的分词器</translation>
    </message>
    <message>
        <source>Tokens are drawn among so many of the likeliest; 0 is all of them.</source>
        <translation>从可能性最大的这么多个词元中抽取；0 表示全部。</translation>
    </message>
    <message>
        <source>Tokens are drawn among the likeliest whose probabilities add up to this; 1 is all of them, and the likeliest is always there.</source>
        <translation>从概率之和达到此值的最可能词元中抽取；1 表示全部，最可能的词元始终包含在内。</translation>
    </message>
    <message>
        <source>Tokens that are added to a prompt, at most; the model&apos;s context and the end-of-text token may end it sooner. Memory for keys and values grows with it. This and the options below are those of ferry generate and of sample_prompts.</source>
        <translation>最多在提示之后添加的词元数；遇到模型上下文上限或文本结束词元时可能提前结束。键和值占用的内存随之增长。此选项及以下选项用于 ferry generate 和 sample_prompts。</translation>
    </message>
    <message>
        <source>Tokens that two windows of a long context share (question-answering); less than a window holds. More finds answers that a window&apos;s edge would cut, and makes more windows.</source>
        <translation>长上下文的两个窗口共有的词元数（question-answering）；须小于窗口容量。越多越能找到会被窗口边缘截断的答案，窗口数也越多。</translation>
    </message>
    <message>
        <source>Train a new model from scratch: its config.json, a directory that holds one, or the name of a known model whose shape is taken. No weights are read; they are drawn by seed as transformers draws them. Takes the place of model_name_or_path.</source>
        <translation>从头训练新模型：给出其 config.json、包含该文件的目录，或某个已知模型的名称（采用其结构）。不读取任何权重；权重按 seed 随机生成，方式与 transformers 相同。会取代 model_name_or_path。</translation>
    </message>
    <message>
        <source>Training data</source>
        <translation>训练数据</translation>
    </message>
    <message>
        <source>Type of the trained model</source>
        <translation>训练结果的类型</translation>
    </message>
    <message>
        <source>Type of the weights in final/. auto: the type the run computes in, so that the file of a 16-bit run is half as large, as the models of others are; fp32 keeps the bits of the master weights. Checkpoints hold those in any case.</source>
        <translation>final/ 中权重的类型。auto：运行的计算类型，因此 16 位运行的文件只有一半大，与其他人发布的模型一样；fp32 保留主权重的全部位。检查点始终保存主权重。</translation>
    </message>
    <message>
        <source>Type the model computes in; master weights keep fp32&apos;s bits. auto: bf16 on GPUs from sm_80, fp16 with loss scaling on sm_75, fp32 on a CPU. 16-bit halves memory and transfers. In ferry export the type of the weights that it writes; auto: of a checkpoint the type its run computed in, of other models as they are.</source>
        <translation>模型计算所用的类型；主权重保持 fp32 的精度。auto：sm_80 及以上的 GPU 用 bf16，sm_75 用带损失缩放的 fp16，CPU 用 fp32。16 位可使内存和传输量减半。在 ferry export 中，它是写出的权重的类型；auto：检查点用其运行的计算类型，其他模型保持原样。</translation>
    </message>
    <message>
        <source>Update while computing</source>
        <translation>计算时更新</translation>
    </message>
    <message>
        <source>Warm-up steps</source>
        <translation>预热步数</translation>
    </message>
    <message>
        <source>Weight decay</source>
        <translation>权重衰减</translation>
    </message>
    <message>
        <source>Weight slots</source>
        <translation>权重槽位</translation>
    </message>
    <message>
        <source>What an evaluation is judged by: loss, accuracy, f1, f1_macro, pearson, ..., as the evaluations print it.</source>
        <translation>用于评判评估结果的指标：loss、accuracy、f1、f1_macro、pearson 等，名称与评估输出中的相同。</translation>
    </message>
    <message>
        <source>What cosine_with_min_lr, polynomial and wsd end at. Above 0 the last steps still learn.</source>
        <translation>cosine_with_min_lr、polynomial 和 wsd 最终达到的值。大于 0 时，最后几步仍在学习。</translation>
    </message>
    <message>
        <source>What is between the columns of a CSV or TSV file: comma, semicolon, tab, pipe, space, or a character; auto is tab for .tsv and for .csv the one that its lines are split by.</source>
        <translation>CSV 或 TSV 文件的列间分隔符：comma、semicolon、tab、pipe、space，或某个字符；auto 对 .tsv 用 tab，对 .csv 用实际分隔各行的字符。</translation>
    </message>
    <message>
        <source>What the token counts of micro-batches are rounded up to, as 64,448,512. auto takes up to eight that fit the run&apos;s texts, when it begins; they belong to what fixes its bits, and a run that goes on keeps them.</source>
        <translation>微批次的词元数向上取整到哪些值，例如 64,448,512。auto 在运行开始时选取最多八个适合其文本的值；它们属于决定逐位结果的因素，继续的运行会沿用它们。</translation>
    </message>
    <message>
        <source>When a checkpoint is written: every save_steps, at the end of each epoch, or never. Without one a run that is killed starts again.</source>
        <translation>何时写入检查点：每隔 save_steps、每轮结束时，或从不。没有检查点时，被终止的运行要从头开始。</translation>
    </message>
    <message>
        <source>When to evaluate</source>
        <translation>评估时机</translation>
    </message>
    <message>
        <source>When to save</source>
        <translation>保存时机</translation>
    </message>
    <message>
        <source>Where the model computes; auto takes the GPU if there is a usable one. simulated is a GPU played by the CPU, for tests.</source>
        <translation>模型在哪里计算；有可用的 GPU 时 auto 使用 GPU。simulated 是由 CPU 模拟的 GPU，用于测试。</translation>
    </message>
    <message>
        <source>Where tokens are kept</source>
        <translation>词元保存位置</translation>
    </message>
    <message>
        <source>Whether a larger metric_for_best_model is better; auto: not for losses and errors.</source>
        <translation>metric_for_best_model 是否越大越好；auto：损失和误差类指标为否，其他为是。</translation>
    </message>
    <message>
        <source>Whether the first line of a CSV or TSV file names the columns; auto goes by names that are usual, and asks where it may be either.</source>
        <translation>CSV 或 TSV 文件的第一行是否为列名；auto 根据常见列名判断，无法确定时会询问。</translation>
    </message>
    <message>
        <source>Worker threads</source>
        <translation>工作线程数</translation>
    </message>
    <message>
        <source>Write a line with loss, learning rate and gradient norm every so many steps, and at the end. The loss is the mean since the last line (each tenth of the run has one, too). A smaller number shows trouble sooner and makes a longer log.</source>
        <translation>每隔这么多步以及结束时，写一行损失、学习率和梯度范数。损失为自上一行以来的平均值（运行每完成十分之一也会写一行）。值越小，越早看出问题，日志也越长。</translation>
    </message>
    <message>
        <source>blocks</source>
        <translation>块</translation>
    </message>
    <message>
        <source>bytes, or 11GiB</source>
        <translation>字节数，或 11GiB</translation>
    </message>
    <message>
        <source>bytes, or 48GiB</source>
        <translation>字节数，或 48GiB</translation>
    </message>
    <message>
        <source>checkpoints</source>
        <translation>检查点</translation>
    </message>
    <message>
        <source>cycles</source>
        <translation>周期</translation>
    </message>
    <message>
        <source>divisor of the scores</source>
        <translation>分数的除数</translation>
    </message>
    <message>
        <source>epochs</source>
        <translation>轮</translation>
    </message>
    <message>
        <source>evaluations</source>
        <translation>次评估</translation>
    </message>
    <message>
        <source>exponent</source>
        <translation>指数</translation>
    </message>
    <message>
        <source>factor a step</source>
        <translation>每步因子</translation>
    </message>
    <message>
        <source>factor of learning_rate</source>
        <translation>learning_rate 的倍数</translation>
    </message>
    <message>
        <source>final/ is the model of the best evaluation, not of the last step. A checkpoint is written at each new best one, and kept.</source>
        <translation>final/ 为评估结果最佳的模型，而不是最后一步的模型。每次出现新的最佳结果时都会写入检查点并保留。</translation>
    </message>
    <message>
        <source>micro-batches</source>
        <translation>微批次</translation>
    </message>
    <message>
        <source>norm of all gradients</source>
        <translation>所有梯度的范数</translation>
    </message>
    <message>
        <source>of the metric</source>
        <translation>按指标计</translation>
    </message>
    <message>
        <source>samples</source>
        <translation>样本</translation>
    </message>
    <message>
        <source>share dropped</source>
        <translation>丢弃的比例</translation>
    </message>
    <message>
        <source>share kept a step</source>
        <translation>每步保留的比例</translation>
    </message>
    <message>
        <source>share of a label</source>
        <translation>占标签的份额</translation>
    </message>
    <message>
        <source>share of dataset</source>
        <translation>占数据集的比例</translation>
    </message>
    <message>
        <source>share of learning_rate</source>
        <translation>占 learning_rate 的比例</translation>
    </message>
    <message>
        <source>share of probability</source>
        <translation>概率份额</translation>
    </message>
    <message>
        <source>size of a gradient</source>
        <translation>梯度大小</translation>
    </message>
    <message>
        <source>size of a step</source>
        <translation>步长</translation>
    </message>
    <message>
        <source>steps</source>
        <translation>步</translation>
    </message>
    <message>
        <source>steps, or share of all steps below 1</source>
        <translation>步数；小于 1 时为占总步数的比例</translation>
    </message>
    <message>
        <source>steps, share below 1, or time</source>
        <translation>步数；小于 1 时为占总步数的比例；或时间</translation>
    </message>
    <message>
        <source>threads</source>
        <translation>线程</translation>
    </message>
    <message>
        <source>time: 90s, 30min, 8h, 2d</source>
        <translation>时间：90s、30min、8h、2d</translation>
    </message>
    <message>
        <source>tokens</source>
        <translation>词元</translation>
    </message>
    <message>
        <source>whole number</source>
        <translation>整数</translation>
    </message>
    <message>
        <source>Data</source>
        <translation>数据</translation>
    </message>
    <message>
        <source>Evaluation and logging</source>
        <translation>评估与日志</translation>
    </message>
    <message>
        <source>Memory and placement</source>
        <translation>内存与放置</translation>
    </message>
    <message>
        <source>Output</source>
        <translation>输出</translation>
    </message>
    <message>
        <source>Regularisation</source>
        <translation>正则化</translation>
    </message>
    <message>
        <source>Samples</source>
        <translation>采样文本</translation>
    </message>
    <message>
        <source>Threads</source>
        <translation>线程</translation>
    </message>
    <message>
        <source>A third place beside GPU and host memory: directories on NVMe drives, separated by commas, one for each drive. What host memory has no room for lives there, optimizer states first, then weights, then gradients; several drives share it in stripes. A step reads and writes it once, so slow drives make slow steps. Empty: no drive is used. Never changes the result.</source>
        <translation>GPU 和主机内存之外的第三个存放位置：NVMe 硬盘上的目录，以逗号分隔，每块硬盘一个。主机内存放不下的内容存放在那里，先是优化器状态，然后是权重，最后是梯度；多块硬盘以条带方式分担。每一步都会读写一遍，因此慢的硬盘会使每一步变慢。留空：不使用硬盘。从不改变结果。</translation>
    </message>
    <message>
        <source>Bytes that may be written to the drives of nvme_path, all of them together, in their life, as their data sheets say (TBW). The plan then says how long they last at the run&apos;s rate; auto: not known.</source>
        <translation>nvme_path 的所有硬盘在其寿命内总共可写入的字节数，以其数据表为准（TBW）。计划会据此说明按此运行的速度它们能用多久；auto：未知。</translation>
    </message>
    <message>
        <source>Endurance of the drives</source>
        <translation>硬盘的写入寿命</translation>
    </message>
    <message>
        <source>NVMe directories</source>
        <translation>NVMe 目录</translation>
    </message>
    <message>
        <source>NVMe space</source>
        <translation>NVMe 空间</translation>
    </message>
    <message>
        <source>Space that a run may take on the drives of nvme_path, all of them together; auto takes what is free there, and keeps a margin.</source>
        <translation>一次运行在 nvme_path 的所有硬盘上总共可占用的空间；auto 使用那里的空闲空间，并留出余量。</translation>
    </message>
    <message>
        <source>bytes, or 400GiB</source>
        <translation>字节数，或 400GiB</translation>
    </message>
    <message>
        <source>bytes, or 600TB</source>
        <translation>字节数，或 600TB</translation>
    </message>
    <message>
        <source>For runs with states on a drive (nvme_path): copy weights and states of each checkpoint into its directory, which then needs no drive and loads in transformers. Otherwise a checkpoint keeps the states where they are and is written at once; `ferry export` makes a model of it.</source>
        <translation>用于状态存放在硬盘上（nvme_path）的运行：把每个检查点的权重和状态复制到它的目录中，该目录随后不再需要硬盘，并可由 transformers 载入。否则检查点把状态留在原处，瞬间写成；`ferry export` 由它生成模型。</translation>
    </message>
    <message>
        <source>Self-contained checkpoints</source>
        <translation>自足的检查点</translation>
    </message>
    <message>
        <source>A number for each name in dataset, with commas between them: 0.7,0.3. The data sets may then be of different forms. As many texts are taken, drawn by data_seed, as there are in these shares without taking one twice. Empty: all texts of all.</source>
        <translation>为 dataset 中的每个名称给一个数，用逗号分隔：0.7,0.3。此时各数据集的格式可以不同。按 data_seed 抽取，在不重复取用的前提下按这些份额取尽可能多的文本。留空：取全部文本。</translation>
    </message>
    <message>
        <source>Class weights</source>
        <translation>类别权重</translation>
    </message>
    <message>
        <source>Column (or JSON key) that holds the text, by name or by number from 0. Several, as in instruction,input, are joined, each on a line of its own.</source>
        <translation>包含文本的列（或 JSON 键），按名称或从 0 起的编号。多个（如 instruction,input）会连接起来，各占一行。</translation>
    </message>
    <message>
        <source>Evaluates this many texts at most, the first of the data; auto is all. Fewer take less time, and make the scores less sure.</source>
        <translation>最多评估这么多文本，取数据的开头部分；auto 为全部。越少越快，但分数越不可靠。</translation>
    </message>
    <message>
        <source>Names of labels or tags that are numbers in the data, with commas between them, in the order of the numbers from 0: O,B-PER,I-PER. auto takes those that stand in a Parquet or Arrow file, or in a dataset_info.json beside the data.</source>
        <translation>数据中以数字表示的标签的名称，用逗号分隔，按从 0 起的数字顺序：O,B-PER,I-PER。auto 取 Parquet 或 Arrow 文件中、或数据旁 dataset_info.json 中的名称。</translation>
    </message>
    <message>
        <source>Names of labels</source>
        <translation>标签名称</translation>
    </message>
    <message>
        <source>Prompts that are too long</source>
        <translation>过长的提示</translation>
    </message>
    <message>
        <source>Shares of several data sets</source>
        <translation>多个数据集的份额</translation>
    </message>
    <message>
        <source>Texts to evaluate</source>
        <translation>评估的文本数</translation>
    </message>
    <message>
        <source>Texts to train on</source>
        <translation>训练的文本数</translation>
    </message>
    <message>
        <source>Trains on this many texts at most, the first of the data; auto is all. A quick trial.</source>
        <translation>最多用这么多文本训练，取数据的开头部分；auto 为全部。用于快速试验。</translation>
    </message>
    <message>
        <source>What a text counts in the loss by its label (classification): auto makes rare labels count more, texts / (labels * texts of the label); or a number for each label, in their order, with commas between them; none: all count the same.</source>
        <translation>文本按其标签在损失中的权重（分类）：auto 使罕见标签权重更大，即 文本数 /（标签数 * 该标签的文本数）；或按标签顺序为每个标签给一个数，用逗号分隔；none：全部相同。</translation>
    </message>
    <message>
        <source>texts</source>
        <translation>条文本</translation>
    </message>
    <message>
        <source>Measure plans</source>
        <translation>实测方案</translation>
    </message>
    <message>
        <source>Where plans are promised nearly the same time, the start of a new run times some steps of each and takes the fastest, in about a twentieth of the run&apos;s time. The choice is kept for later runs. It may choose another micro-batch, and so other bits, than a run elsewhere; off takes what is promised to be the fastest.</source>
        <translation>若几个方案的预计时间相近，新运行开始时会分别实测几步并取最快者，所用时间约为运行时间的二十分之一。所作选择会留给以后的运行。所选微批可能与别处的运行不同，因而结果的位也可能不同；off 则取预计最快的方案。</translation>
    </message>
    <message>
        <source>Maximum steps</source>
        <translation>最大步数</translation>
    </message>
    <message>
        <source>Maximum time</source>
        <translation>最长时间</translation>
    </message>
    <message>
        <source>factor for each layer</source>
        <translation>每层的系数</translation>
    </message>
    <message>
        <source>all tokens</source>
        <translation>全部词元</translation>
    </message>
    <message>
        <source>any improvement</source>
        <translation>任何改善</translation>
    </message>
    <message>
        <source>by epochs</source>
        <translation>由轮数决定</translation>
    </message>
    <message>
        <source>no limit</source>
        <translation>不限</translation>
    </message>
    <message>
        <source>nothing</source>
        <translation>不留出</translation>
    </message>
    <message>
        <source>off</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>same everywhere</source>
        <translation>各层相同</translation>
    </message>
    <message>
        <source>the likeliest token</source>
        <translation>最可能的词元</translation>
    </message>
    <message>
        <source>zero</source>
        <translation>零</translation>
    </message>
    <message>
        <source>Checkpoints kept; older ones are removed once a newer one is complete. Each takes 12 bytes a parameter of disk, 8 with optim = adamw_bf16 or lion, 6 with adamw_8bit, 4 with sgd, 8 with momentum.</source>
        <translation>保留的检查点数；新的检查点写完后，旧的会被删除。每个检查点中每个参数占用 12 字节磁盘空间，optim = adamw_bf16 或 lion 时为 8 字节，adamw_8bit 时为 6 字节，sgd 时为 4 字节，带动量时为 8 字节。</translation>
    </message>
    <message>
        <source>Decay of AdamW&apos;s mean of gradients; higher is smoother and turns later. With optim = lion the share of the mean in the direction of a step.</source>
        <translation>AdamW 梯度均值的衰减；越高越平滑，转向越迟。optim = lion 时是均值在每步方向中所占的比例。</translation>
    </message>
    <message>
        <source>Decay of AdamW&apos;s mean of squared gradients; lower reacts faster and is less steady. With optim = lion the decay of the mean of gradients, 0.99 in its paper.</source>
        <translation>AdamW 梯度平方均值的衰减；越低反应越快，也越不稳定。optim = lion 时是梯度均值的衰减，其论文中为 0.99。</translation>
    </message>
    <message>
        <source>How the fp32 weights that the optimizer updates are kept. fp32: beside those the model computes with. split, with dtype = bf16: the model&apos;s weights are their upper halves, only the lower ones lie beside them; 2 bytes a parameter less, the same training but for weights that lie halfway between two of bf16, which round away from zero.</source>
        <translation>优化器所更新的 fp32 权重如何保存。fp32：与模型计算所用的权重并存。split（需 dtype = bf16）：模型的权重就是其高半部分，旁边只存低半部分；每个参数少用 2 字节，训练过程相同，只有恰好位于两个 bf16 值正中间的权重例外，它们会向远离零的方向舍入。</translation>
    </message>
    <message>
        <source>Momentum that looks a step ahead: optim = sgd adds the gradient to the direction once more.</source>
        <translation>向前多看一步的动量：optim = sgd 会把梯度再次加到方向上。</translation>
    </message>
    <message>
        <source>Momentum</source>
        <translation>动量</translation>
    </message>
    <message>
        <source>Nesterov&apos;s momentum</source>
        <translation>Nesterov 动量</translation>
    </message>
    <message>
        <source>Pull of the weights towards zero, per step and learning rate; biases and norms are left out. 0.01 is usual against overfitting. With optim = sgd it is part of the gradient, and so of the momentum.</source>
        <translation>将权重拉向零的强度，按每步和学习率计；偏置和归一化参数除外。为防止过拟合，常用 0.01。optim = sgd 时它是梯度的一部分，因此也进入动量。</translation>
    </message>
    <message>
        <source>Share of the last step&apos;s direction that optim = sgd goes on in. 0.9 is usual; it takes 4 bytes a parameter.</source>
        <translation>optim = sgd 沿上一步方向继续前进的比例。常用 0.9；每个参数占用 4 字节。</translation>
    </message>
    <message>
        <source>adamw: AdamW with decoupled weight decay, as torch.optim.AdamW defines it, with states in fp32, 8 bytes a parameter. adamw_bf16: in 4 bytes; adamw_8bit: in 2. lion: Lion as its paper defines it, 4 bytes; its learning rate is 3 to 10 times smaller than AdamW&apos;s, its weight decay as much larger. sgd: as torch.optim.SGD, without states, or with momentum 4 bytes. Fewer bytes leave room for larger models, and are fewer to move; what they lose is rounded up or down at random, which adds some noise to the steps and no drift, but that v of adamw_8bit settles some 2 % high. With adamw_8bit, m is off by less than 1/8 of itself and the root of v by 1/16, and a parameter learns too slowly whose gradients are some 10,000 times smaller than its neighbours&apos;.</source>
        <translation>adamw：采用解耦权重衰减的 AdamW，与 torch.optim.AdamW 的定义一致，状态为 fp32，每个参数 8 字节。adamw_bf16：4 字节；adamw_8bit：2 字节。lion：与其论文的定义一致，4 字节；学习率应比 AdamW 的小 3 到 10 倍，权重衰减则大同样的倍数。sgd：与 torch.optim.SGD 一致，没有状态，带动量时为 4 字节。字节越少，能容纳的模型越大，要搬运的数据也越少；损失的精度通过随机向上或向下舍入来处理，这会给每步带来一些噪声，但不会造成漂移，只是 adamw_8bit 的 v 会稳定在偏高约 2 % 处。使用 adamw_8bit 时，m 的误差小于自身的 1/8，v 的平方根误差小于 1/16；如果某个参数的梯度比相邻参数小约 10,000 倍，它会学得太慢。</translation>
    </message>
    <message>
        <source>GPUs that share each step: how many (2), or which ones (0,2). Each holds a part of the states and takes micro-batches in turn. Never changes the result. With device = cpu, processes on the CPU.</source>
        <translation>共同完成每一步的 GPU：数量（2）或编号（0,2）。每个 GPU 保存一部分状态，并轮流处理微批次。结果不变。device = cpu 时为 CPU 上的进程。</translation>
    </message>
    <message>
        <source>GPUs</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>Address of the first host</source>
        <translation>第一台主机的地址</translation>
    </message>
    <message>
        <source>Hosts that share each step, each with as many GPUs as gpus says. The same command is given on each host, with a node_rank of its own.</source>
        <translation>共同完成每一步的主机数，每台主机的 GPU 数由 gpus 指定。在每台主机上运行同样的命令，只是 node_rank 各不相同。</translation>
    </message>
    <message>
        <source>Name or address by which all hosts reach host 0, the same on each.</source>
        <translation>所有主机都能连到主机 0 的名称或地址，各主机相同。</translation>
    </message>
    <message>
        <source>Number of hosts</source>
        <translation>主机数</translation>
    </message>
    <message>
        <source>Number of this host among nnodes, from 0. Host 0 leads: it reads model and data, and writes the run. The others need neither.</source>
        <translation>本机在 nnodes 台主机中的编号，从 0 开始。主机 0 为主：它读取模型和数据，并写出运行结果。其他主机两者都不需要。</translation>
    </message>
    <message>
        <source>Number of this host</source>
        <translation>本机编号</translation>
    </message>
    <message>
        <source>Port of host 0 at which the hosts meet. Each run has one of its own.</source>
        <translation>各主机会合所用的主机 0 的端口。每个运行使用各自的端口。</translation>
    </message>
    <message>
        <source>Port of the first host</source>
        <translation>第一台主机的端口</translation>
    </message>
    <message>
        <source>TCP port</source>
        <translation>端口号</translation>
    </message>
    <message>
        <source>Time in which all processes of a run must have come. After it the run ends and names those that are missing.</source>
        <translation>一个运行的所有进程必须到齐的时间。超时后运行结束，并指出缺少哪些进程。</translation>
    </message>
    <message>
        <source>Wait for hosts</source>
        <translation>等待主机</translation>
    </message>
    <message>
        <source>from 0</source>
        <translation>从 0 开始</translation>
    </message>
    <message>
        <source>hosts</source>
        <translation>台主机</translation>
    </message>
    <message>
        <source>time</source>
        <translation>时间</translation>
    </message>
    <message>
        <source>Hosts and restarts</source>
        <translation>主机与重新启动</translation>
    </message>
    <message>
        <source>How often the run starts anew from its last checkpoint where one of its processes dies. Faults of settings, data or memory end it at once.</source>
        <translation>某个进程意外终止时，运行最多从最近的检查点重新开始多少次。设置、数据或内存的错误会立即结束运行。</translation>
    </message>
    <message>
        <source>Restarts</source>
        <translation>重新启动次数</translation>
    </message>
    <message>
        <source>restarts</source>
        <translation>次</translation>
    </message>
    <message>
        <source>none</source>
        <translation>无</translation>
    </message>
    <message>
        <source>Ferry on the other hosts</source>
        <translation>其他主机上的 Ferry</translation>
    </message>
    <message>
        <source>Hosts</source>
        <translation>主机</translation>
    </message>
    <message>
        <source>The program that hosts starts on the other hosts; empty: the path of this one.</source>
        <translation>hosts 在其他主机上启动的程序；留空则使用本程序的路径。</translation>
    </message>
    <message>
        <source>Reduction of gradients</source>
        <translation>梯度的归约</translation>
    </message>
    <message>
        <source>The order in which several GPUs add the gradients of a step: in that of its micro-batches, which gives the bits of one GPU (ordered), or each GPU its own first, which sends less (fast). auto takes fast where ordered would take 3 % longer.</source>
        <translation>多块 GPU 把一步的梯度相加的顺序：按微批次的顺序，结果与单块 GPU 逐位相同（ordered）；或者每块 GPU 先加自己的，传输更少（fast）。ordered 会慢 3 % 时，auto 取 fast。</translation>
    </message>
    <message>
        <source>Sharding level (ZeRO)</source>
        <translation>分片级别（ZeRO）</translation>
    </message>
    <message>
        <source>Shares of the GPUs</source>
        <translation>各 GPU 的份额</translation>
    </message>
    <message>
        <source>Hosts of a run, this one first, then those on which this command starts Ferry by ssh. It needs keys, not passwords. @FILE reads them from a file, a host a line, as mpirun does.</source>
        <translation>一个运行的各台主机，本机在前，其后是由本命令通过 ssh 启动 Ferry 的主机。需要密钥登录，而不是密码。@ 后写文件名则从该文件读取主机，每行一台。</translation>
    </message>
    <message>
        <source>How several GPUs share a step. samples: each takes some of its micro-batches through the whole model, and holds a part of each block. blocks: each has some of the blocks, all micro-batches pass from GPU to GPU, and no weights or gradients do; it wants as many micro-batches as GPUs. auto takes blocks where that is 10 % faster, or alone fits. Never changes the result.</source>
        <translation>多块 GPU 如何分担一步。samples：每块 GPU 让一部分微批次通过整个模型，并持有每个块的一部分。blocks：每块 GPU 持有一部分块，所有微批次在 GPU 之间依次传递，而权重和梯度不传递；微批次最好不少于 GPU 数量。auto 在 blocks 快 10 % 或只有它放得下时采用 blocks。从不改变结果。</translation>
    </message>
    <message>
        <source>Split over GPUs</source>
        <translation>在 GPU 之间的划分</translation>
    </message>
    <message>
        <source>For experiments: each stage of a pipeline has so many runs of blocks that follow each other. With more of them the GPUs wait less at the ends of a step, and pass more values (interleaved 1F1B). Never changes the result.</source>
        <translation>用于实验：流水线的每一级含有这么多段相连的块。段数越多，各 GPU 在一步的首尾等待越少，但传递的值也越多（交错式 1F1B）。绝不改变结果。</translation>
    </message>
    <message>
        <source>For experiments: the whole model per micro-batch (horizontal, less saved), or all micro-batches block by block (vertical, weights transferred once). Where GPUs have some of the blocks, horizontal is a pipeline (1F1B): each has blocks that follow each other, and as many micro-batches as stages are under way. Never changes the result.</source>
        <translation>用于实验：每个微批次通过整个模型（horizontal，保存较少），或所有微批次逐块通过（vertical，权重只传输一次）。当各 GPU 分担块时，horizontal 是流水线（1F1B）：每个 GPU 含有相连的块，同时进行的微批次与级数一样多。绝不改变结果。</translation>
    </message>
    <message>
        <source>How many GPUs have the blocks of one model together, each some of them; a divisor of gpus. With gpus = 4 and pipe_size = 2, two pairs of GPUs take micro-batches through the whole model, and two GPUs with the same blocks hold a part of these each. pipe_size = gpus is the same as gpu_split = blocks, and 1 as samples; auto takes one of these two. Never changes the result.</source>
        <translation>共同含有一个模型全部块的 GPU 数，每个含有其中一些；须整除 gpus。gpus = 4 且 pipe_size = 2 时，两对 GPU 各让微批次通过整个模型，含有相同块的两个 GPU 各保存其中一部分。pipe_size = gpus 等同于 gpu_split = blocks，1 等同于 samples；auto 取这两者之一。绝不改变结果。</translation>
    </message>
    <message>
        <source>Runs of blocks in a stage</source>
        <translation>一级中的块段数</translation>
    </message>
    <message>
        <source>Stages of a pipeline</source>
        <translation>流水线的级数</translation>
    </message>
    <message>
        <source>runs</source>
        <translation>段</translation>
    </message>
    <message>
        <source>GPUs that share texts</source>
        <translation>共享文本的 GPU 数</translation>
    </message>
    <message>
        <source>GPUs that share layers</source>
        <translation>共享层的 GPU 数</translation>
    </message>
    <message>
        <source>So many GPUs work on each micro-batch together: each has some of a layer&apos;s heads and columns, and they add up what they found twice a layer (tensor parallelism). A divisor of gpus and of the number of heads. It wants GPUs that reach each other fast; gpu_split moves less. The result is that of one GPU but for the rounding of sums, and on GPUs for the dropout of attention.</source>
        <translation>这么多 GPU 一起处理每个微批次：每个承担一层中部分注意力头和列，每层两次把各自的结果相加（张量并行）。它是 gpus 和注意力头数的约数。适合彼此连接很快的 GPU；gpu_split 传输得更少。结果与单个 GPU 相同，只差求和的舍入；在 GPU 上注意力的随机丢弃也不同。</translation>
    </message>
    <message>
        <source>For experiments: what each of several GPUs holds of layers that live on the GPUs: their whole weights, and a part of states and gradients (2), or a part of the weights, too (3), which come together for each pass. 1 is taken as 2: no GPU keeps gradients that are another one&apos;s. auto takes the faster one that fits. Never changes the result.</source>
        <translation>供实验使用：多块 GPU 中的每一块为驻留在 GPU 上的层保存什么：完整的权重以及一部分状态和梯度（2），或者权重也只保存一部分（3），每次计算时再合到一起。1 按 2 处理：没有 GPU 保留属于其他 GPU 的梯度。auto 取放得下的方式中较快的一种。不会改变结果。</translation>
    </message>
    <message>
        <source>Adapters</source>
        <translation>适配器</translation>
    </message>
    <message>
        <source>Divides lora_alpha by the square root of the rank (rsLoRA). Large ranks then learn as fast as small ones; the learning rate of a run without it may be too large.</source>
        <translation>将 lora_alpha 除以秩的平方根。这样大的秩与小的秩学得一样快；不用它时合适的学习率此时可能过大。</translation>
    </message>
    <message>
        <source>Dropout of what A reads. 0.05 is usual where there are few texts.</source>
        <translation>A 的输入的随机丢弃。文本较少时通常用 0.05。</translation>
    </message>
    <message>
        <source>Learning rate of B as a multiple of A&apos;s (LoRA+); 16 is what its authors use.</source>
        <translation>B 的学习率是 A 的多少倍（LoRA+）；其作者使用 16。</translation>
    </message>
    <message>
        <source>Linear maps that get an adapter: the ends of their names, as &apos;q_proj,v_proj&apos;, or patterns over whole names, as &apos;model.layers.1?.*&apos;. all-linear (or all): every one of the layers.</source>
        <translation>得到适配器的线性层：名称的结尾，如 &apos;q_proj,v_proj&apos;，或匹配完整名称的模式，如 &apos;model.layers.1?.*&apos;。all-linear（或 all）：各层的全部线性层。</translation>
    </message>
    <message>
        <source>LoRA alpha</source>
        <translation>LoRA 的 α</translation>
    </message>
    <message>
        <source>LoRA dropout</source>
        <translation>LoRA 随机丢弃</translation>
    </message>
    <message>
        <source>LoRA modules</source>
        <translation>LoRA 模块</translation>
    </message>
    <message>
        <source>LoRA rank</source>
        <translation>LoRA 的秩</translation>
    </message>
    <message>
        <source>LoRA+ ratio</source>
        <translation>LoRA+ 倍率</translation>
    </message>
    <message>
        <source>Modules that are trained whole beside the adapters, and saved with them: the ends of their names, as &apos;embed_tokens,lm_head&apos;. A head that the model does not have yet always is.</source>
        <translation>与适配器一起完整训练并保存的模块：名称的结尾，如 &apos;embed_tokens,lm_head&apos;。模型尚未具有的输出头总是如此。</translation>
    </message>
    <message>
        <source>Modules trained whole</source>
        <translation>完整训练的模块</translation>
    </message>
    <message>
        <source>Peak step size of the optimizer. Too large diverges, too small learns nothing in the time: 1e-5 to 5e-5 suits fine-tuning of encoders, small models take more. The default of a decoder is 1e-5, of a model from scratch 3e-4, of adapters 2e-4.</source>
        <translation>优化器的最大步长。过大会发散，过小则在这段时间内学不到东西：1e-5 到 5e-5 适合微调编码器，小模型可以更大。解码器的默认值为 1e-5，从头训练的模型为 3e-4，适配器为 2e-4。</translation>
    </message>
    <message>
        <source>Rank r of the matrices A (r, in) and B (out, r). A larger one learns more and takes more memory: 8 to 64 is usual.</source>
        <translation>矩阵 A（r × 输入）和 B（输出 × r）的秩 r。越大学得越多，占用的内存也越多：通常为 8 到 64。</translation>
    </message>
    <message>
        <source>Rank-stabilised LoRA</source>
        <translation>秩稳定的 LoRA</translation>
    </message>
    <message>
        <source>Trained parameters</source>
        <translation>训练的参数</translation>
    </message>
    <message>
        <source>What A and B give is multiplied by alpha / lora_r (use_rslora: by alpha / sqrt(lora_r)). auto is 2 * lora_r.</source>
        <translation>A 和 B 的结果乘以 α / lora_r（use_rslora 时除以 lora_r 的平方根）。auto 为 2 * lora_r。</translation>
    </message>
    <message>
        <source>columns</source>
        <translation>列</translation>
    </message>
    <message>
        <source>factor</source>
        <translation>倍数</translation>
    </message>
    <message>
        <source>times the learning rate</source>
        <translation>倍学习率</translation>
    </message>
    <message>
        <source>Bits of frozen weights</source>
        <translation>冻结权重的位数</translation>
    </message>
    <message>
        <source>A prompt that fills max_length leaves no room for its completion (causal-lm). leave_out: such rows are counted and left out. cut: the prompt loses its end, so that both get their share, and a chat its oldest turns. Questions without room for their context are left out.</source>
        <translation>提示占满 max_length 时，就没有续写的位置（causal-lm）。leave_out：跳过这样的行并计数。cut：截掉提示的末尾，两者各得一份；对话则去掉最早的轮次。没有位置放正文的问题会被跳过。</translation>
    </message>
    <message>
        <source>API key</source>
        <translation>访问密钥</translation>
    </message>
    <message>
        <source>Address of this machine at which ferry serve listens. 127.0.0.1 is for programs of this machine alone; 0.0.0.0 is for everybody who reaches it, and api_key should then be set.</source>
        <translation>ferry serve 监听的本机地址。127.0.0.1 只供本机的程序使用；0.0.0.0 供所有能连到本机的人使用，这时应设置 api_key。</translation>
    </message>
    <message>
        <source>Address</source>
        <translation>地址</translation>
    </message>
    <message>
        <source>Chat template</source>
        <translation>对话模板</translation>
    </message>
    <message>
        <source>Day in chat templates</source>
        <translation>对话模板中的日期</translation>
    </message>
    <message>
        <source>Day that a chat template which writes the date takes for today, as 2026-01-31; auto is the day on which the run begins, which a resumed run keeps.</source>
        <translation>会写日期的对话模板所用的“今天”，例如 2026-01-31；auto 是运行开始的那一天，恢复的运行保持不变。</translation>
    </message>
    <message>
        <source>First turn of a chat, which says how the model is to answer; of ferry serve where a program gives none. A template without a place for it refuses it; empty is no such turn, and some templates then write one of their own.</source>
        <translation>对话的第一轮，说明模型应如何回答；用于 ferry serve 时，只在程序没有给出时使用。没有位置放它的模板会拒绝它；为空则没有这一轮，有些模板会自己写一段。</translation>
    </message>
    <message>
        <source>For GPUs of different speed: a whole number for each of gpus, with commas between them, 2,1 where the first one is twice as fast as the second. Each gets this share of a step&apos;s micro-batches, or of the blocks. auto measures the GPUs when a run starts, and the run keeps what it has measured. Empty: GPUs of one model get as many, and GPUs of several models are measured; ferry plan estimates them from the machine&apos;s figures. On GPUs of one model it never changes the result.</source>
        <translation>用于速度不同的 GPU：gpus 中每块一个整数，用逗号隔开；第一块比第二块快一倍时写 2,1。每块按份额分得一步的微批次或层块。auto 在运行开始时测量各块 GPU，并保持测得的份额。为空：同型号的 GPU 均分，不同型号的会被测量；ferry plan 按机器的数据估计。在同型号的 GPU 上它从不改变结果。</translation>
    </message>
    <message>
        <source>Format of the export</source>
        <translation>导出格式</translation>
    </message>
    <message>
        <source>Key that programs must send (Authorization: Bearer KEY). Where it is empty, none is asked for. FERRY_API_KEY keeps it out of the list of processes.</source>
        <translation>程序必须发送的密钥（Authorization: Bearer KEY）。为空则不要求。FERRY_API_KEY 可以让它不出现在进程列表中。</translation>
    </message>
    <message>
        <source>Origin of web pages whose scripts may ask the server, as https://my.site, or * for all (CORS). Where it is empty, browsers let none.</source>
        <translation>允许其脚本访问服务器的网页来源，例如 https://my.site；* 表示全部（CORS）。为空时浏览器都不允许。</translation>
    </message>
    <message>
        <source>Plans for a machine that is not here, by its profile&apos;s name: 2080ti-11g, 4090-24g and others (presets/machines/); auto is this one, as ferry doctor measured it. 4090-24g,3060-12g is the first machine with a GPU of each: gpus counts all of them unless it is given.</source>
        <translation>为不在这里的机器做计划，写配置名：2080ti-11g、4090-24g 等（presets/machines/）；auto 是本机，按 ferry doctor 的测量。4090-24g,3060-12g 是第一台机器，各装一块这样的 GPU；不给 gpus 时全部计入。</translation>
    </message>
    <message>
        <source>Port at which ferry serve listens. The address that programs are given is http://localhost:PORT/v1.</source>
        <translation>ferry serve 监听的端口。给程序的地址是 http://localhost:PORT/v1。</translation>
    </message>
    <message>
        <source>Port</source>
        <translation>端口</translation>
    </message>
    <message>
        <source>Server</source>
        <translation>服务器</translation>
    </message>
    <message>
        <source>System prompt</source>
        <translation>系统提示</translation>
    </message>
    <message>
        <source>Template by which chats become texts (causal-lm): a .jinja file, or alpaca, chatml, llama3, vicuna or zephyr; model is the model&apos;s own. auto is model for rows of turns, and leaves rows of prompt and completion without a template. It is stored with the result.</source>
        <translation>把对话变成文本的模板（causal-lm）：一个 .jinja 文件，或 alpaca、chatml、llama3、vicuna、zephyr；model 是模型自己的模板。auto 对有轮次的行用 model，对提示加续写的行不用模板。它会随结果一起保存。</translation>
    </message>
    <message>
        <source>The form that ferry export writes: hf is a Hugging Face directory, gguf one file for llama.cpp and the programs that stand on it (Ollama, LM Studio). auto: gguf where --output ends in .gguf, else hf.</source>
        <translation>ferry export 写出的格式：hf 是 Hugging Face 目录，gguf 是供 llama.cpp 及基于它的程序（Ollama、LM Studio）使用的单个文件。auto：若 --output 以 .gguf 结尾则为 gguf，否则为 hf。</translation>
    </message>
    <message>
        <source>Turns of a chat that have a loss: each answer, the last answer, or all of the text. With all the model learns to write questions, too.</source>
        <translation>对话中计入损失的轮次：每个回答、最后一个回答，或全部文本。选全部时，模型也会学写问题。</translation>
    </message>
    <message>
        <source>Turns that are trained</source>
        <translation>参与训练的轮次</translation>
    </message>
    <message>
        <source>Type of a GGUF file&apos;s matrices</source>
        <translation>GGUF 文件中矩阵的类型</translation>
    </message>
    <message>
        <source>Type of the matrices in a GGUF file; vectors are f32. auto: a checkpoint keeps the type its run computed in, other models the type of their weights, or --dtype decides. f16 and bf16 take half of f32, q8_0 a bit more than a quarter; fewer bits answer faster and a little worse.</source>
        <translation>GGUF 文件中矩阵的类型；向量为 f32。auto：检查点沿用其运行的计算类型，其他模型沿用其权重的类型，或由 --dtype 决定。f16 和 bf16 占 f32 的一半，q8_0 占四分之一多一点；位数越少，回答越快，质量略差。</translation>
    </message>
    <message>
        <source>Variables for the chat template as an object of JSON: {&quot;enable_thinking&quot;: false}. They take the place of those that it has already.</source>
        <translation>给对话模板的变量，写成 JSON 对象：{&quot;enable_thinking&quot;: false}。它们会取代模板已有的变量。</translation>
    </message>
    <message>
        <source>Web pages that may ask</source>
        <translation>可以访问的网页</translation>
    </message>
    <message>
        <source>What the template is given</source>
        <translation>给模板的变量</translation>
    </message>
    <message>
        <source>Where the result is written; auto makes a new directory under runs/. In ferry export a directory, or a file whose name ends in .gguf.</source>
        <translation>结果的写入位置；auto 在 runs/ 下新建目录。在 ferry export 中为目录，或名称以 .gguf 结尾的文件。</translation>
    </message>
    <message>
        <source>any that is free</source>
        <translation>任意空闲端口</translation>
    </message>
    <message>
        <source>Look for faults first</source>
        <translation>先检查错误</translation>
    </message>
    <message>
        <source>Looks for faults that no error shows, before the first step: answers whose end is not learnt, labels that nothing has, texts in both parts of the data, a template that leaves turns out, and the like. Off saves the seconds that it takes.</source>
        <translation>在第一步之前检查不会报错的问题：学不到结尾的回答、没有文本的标签、同时出现在两部分数据中的文本、略去轮次的模板等。关闭可省去检查所需的几秒。</translation>
    </message>
    <message>
        <source>Beta</source>
        <translation>β 系数</translation>
    </message>
    <message>
        <source>By how much the chosen answer is to be ahead with preference_loss = simpo: gamma of its paper.</source>
        <translation>preference_loss = simpo 时较好的回答应领先多少，即其论文中的 γ。</translation>
    </message>
    <message>
        <source>How closely the model keeps to its reference: less lets it go further (task = preference). auto is 0.1, with simpo 2.</source>
        <translation>模型与参考保持多近：越小走得越远（task = preference）。auto 为 0.1，simpo 时为 2。</translation>
    </message>
    <message>
        <source>Loss of a chosen and a rejected answer (task = preference), by the names of TRL: sigmoid is DPO. orpo, simpo and cpo need no reference; for the others the answers are first evaluated with the weights that the run begins with.</source>
        <translation>较好与较差回答的损失（task = preference），名称与 TRL 相同：sigmoid 即 DPO。orpo、simpo 和 cpo 不需要参考；其余的会先用运行开始时的权重评估各回答。</translation>
    </message>
    <message>
        <source>Loss of a pair</source>
        <translation>成对回答的损失</translation>
    </message>
    <message>
        <source>Margin</source>
        <translation>间隔</translation>
    </message>
    <message>
        <source>Pairs of answers</source>
        <translation>成对的回答</translation>
    </message>
    <message>
        <source>Share of each label spread over all classes; 0.1 makes overconfident classifiers milder. With task = preference: the share of pairs taken to be the wrong way round (cDPO).</source>
        <translation>每个标签分摊到所有类别的比例；0.1 使过于自信的分类器更温和。task = preference 时：视为好坏颠倒的成对回答的比例（cDPO）。</translation>
    </message>
    <message>
        <source>Weight of bad answers</source>
        <translation>差回答的权重</translation>
    </message>
    <message>
        <source>Weight of good answers</source>
        <translation>好回答的权重</translation>
    </message>
    <message>
        <source>Weight of the chosen answers</source>
        <translation>较好回答的权重</translation>
    </message>
    <message>
        <source>Weight of the usual loss of a language model on the chosen answers, which is added to that of the pairs (task = preference). auto is 1 with orpo and cpo, else 0.</source>
        <translation>较好回答上语言模型通常损失的权重，加到成对回答的损失上（task = preference）。auto 在 orpo 和 cpo 时为 1，否则为 0。</translation>
    </message>
    <message>
        <source>What a bad answer counts in the loss of task = kto: less where most are bad.</source>
        <translation>差回答在 task = kto 的损失中所占的分量：多数是差回答时取小一些。</translation>
    </message>
    <message>
        <source>What a good answer counts in the loss of task = kto. Good and bad answers should weigh alike: weight * number of the good ones from 1 to 1.33 times that of the bad ones.</source>
        <translation>好回答在 task = kto 的损失中所占的分量。好坏回答的总权重应相近：好回答的权重乘数量为差回答的 1 到 1.33 倍。</translation>
    </message>
    <message>
        <source>factor of the log-probabilities</source>
        <translation>对数概率的倍数</translation>
    </message>
    <message>
        <source>factor of their loss</source>
        <translation>其损失的倍数</translation>
    </message>
    <message>
        <source>log-odds</source>
        <translation>对数几率</translation>
    </message>
    <message>
        <source>Asks a language model that was written and the one it was made from for the same tokens, up to 200, and refuses it where they answer otherwise. It takes the time and memory to run both, one after the other; off leaves it at the bytes, which are always compared.</source>
        <translation>让写出的语言模型与其来源的模型就相同的词元作答，最多 200 个；若回答不同则拒绝。需要依次运行两者的时间和内存；关闭后只比较字节，字节总会比较。</translation>
    </message>
    <message>
        <source>Compare answers after an export</source>
        <translation>导出后比较回答</translation>
    </message>
    <message>
        <source>Attention to shared texts</source>
        <translation>对共享文本的注意力方式</translation>
    </message>
    <message>
        <source>For long texts: so many GPUs share the tokens of each micro-batch, so that each holds this part of its activations (sequence parallelism); sp_attention says how they attend to the others&apos; tokens. A divisor of gpus. For language models and tags of tokens. The result is that of one GPU but for the rounding of sums, and on GPUs for the dropout of attention.</source>
        <translation>用于长文本：这么多 GPU 共享每个微批次的词元，因此每个只保存相应部分的激活（序列并行）；sp_attention 决定它们怎样关注其他 GPU 的词元。它是 gpus 的约数。适用于语言模型和词元标注。结果与单个 GPU 相同，只差求和的舍入；在 GPU 上注意力的随机丢弃也不同。</translation>
    </message>
    <message>
        <source>How GPUs that share texts attend to each other&apos;s tokens. heads: they exchange tokens for heads of attention, whose number is a multiple of sp_size (Ulysses). ring: keys and values go round, of any number of heads (ring attention); of one long causal text the last GPU then works longest. auto takes heads where they can be shared.</source>
        <translation>共享文本的 GPU 怎样关注彼此的词元。heads：用词元交换注意力头，头数须是 sp_size 的倍数。ring：键和值轮流传递，头数不限（环形注意力）；对一段很长的因果文本，最后一个 GPU 工作最久。auto 在头可以分配时取 heads。</translation>
    </message>
    <message>
        <source>Labels of a template</source>
        <translation>模板的标签</translation>
    </message>
    <message>
        <source>Prompts</source>
        <translation>提示模板</translation>
    </message>
    <message>
        <source>Start of virtual tokens</source>
        <translation>虚拟词元的初值</translation>
    </message>
    <message>
        <source>Template</source>
        <translation>模板</translation>
    </message>
    <message>
        <source>Text of virtual tokens</source>
        <translation>虚拟词元的文本</translation>
    </message>
    <message>
        <source>Text whose tokens the virtual ones start as, over and over where it has fewer.</source>
        <translation>虚拟词元以这段文本的词元为初值；词元不足时循环使用。</translation>
    </message>
    <message>
        <source>Trained tokens before each text (tuning = soft_prompt). More learn more, and take their part of max_length.</source>
        <translation>每段文本之前的可训练词元（tuning = soft_prompt）。越多学得越多，但会占用 max_length 的一部分。</translation>
    </message>
    <message>
        <source>Virtual tokens</source>
        <translation>虚拟词元</translation>
    </message>
    <message>
        <source>What is trained: a classifier of texts; the masked language model of an encoder (mlm) or the language model of a decoder (causal-lm), both on texts without labels; a tagger of words, such as names (token-classification); a reader that finds answers in a text (question-answering); or, from pairs of a better and a worse answer to the same prompt, a language model that prefers the better ones (preference; kto from single good and bad ones) or a classifier that gives answers a number (reward); or a language model that tells labels by words at one place of a template (prompt-classification).</source>
        <translation>训练什么：文本分类器；编码器的掩码语言模型（mlm）或解码器的语言模型（causal-lm），两者都用没有标签的文本；给词（如名称）加标记的模型（token-classification）；在文本中找答案的阅读器（question-answering）；或者，从同一提示的较好与较差回答中学习：偏好较好回答的语言模型（preference；单个的好坏回答用 kto），或给回答打分的分类器（reward）；或者，通过模板中某一处的词来判断标签的语言模型（prompt-classification）。</translation>
    </message>
    <message>
        <source>Words of labels</source>
        <translation>标签的词</translation>
    </message>
    <message>
        <source>Words of several tokens</source>
        <translation>多词元的词</translation>
    </message>
    <message>
        <source>Logit of a word that has several tokens, all of which are asked for at the mask. It is that of the first one, their mean, or the largest.</source>
        <translation>由多个词元组成的词的分数，这些词元都在掩码处被询问：取第一个词元的值（first）、平均值（mean）或最大值（max）。</translation>
    </message>
    <message>
        <source>Turns a text into a question for a language model (task = prompt-classification), as OpenPrompt writes it: {&quot;placeholder&quot;: &quot;text_a&quot;} It was {&quot;mask&quot;}. text_b is the second text of a pair, {&quot;soft&quot;: 5} are five trained tokens, and {&quot;soft&quot;: &quot;It was&quot;} are trained ones that start as these words. A decoder reads what comes before the mask. A file has a template in each line, and NAME:2 is its second one. --template is the same.</source>
        <translation>把文本变成对语言模型的提问（task = prompt-classification），写法与 OpenPrompt 相同：{&quot;placeholder&quot;: &quot;text_a&quot;} 很 {&quot;mask&quot;}。text_b 是文本对中的第二段文本，{&quot;soft&quot;: 5} 是五个可训练的词元，{&quot;soft&quot;: &quot;很&quot;} 是以这些词为初值的可训练词元。解码器只读取掩码之前的内容。文件中每行一个模板，NAME:2 是第二个。--template 与此相同。</translation>
    </message>
    <message>
        <source>Values that virtual tokens start with. random: between -0.5 and 0.5; text: the rows of prompt_tuning_init_text; vocab: those of the vocabulary&apos;s first tokens.</source>
        <translation>虚拟词元的初值。random：-0.5 到 0.5 之间的随机值；text：prompt_tuning_init_text 各词元的行；vocab：词表最前面词元的行。</translation>
    </message>
    <message>
        <source>Words that stand for labels where a template asks for one: {&quot;negative&quot;: [&quot;bad&quot;, &quot;terrible&quot;], &quot;positive&quot;: [&quot;great&quot;]}, or a list in the order of the labels. A file has the same (.json), or the words of a label in each line. Empty for the labels&apos; own names.</source>
        <translation>模板询问一个词时代表各标签的词：{&quot;差评&quot;: [&quot;差&quot;, &quot;糟&quot;], &quot;好评&quot;: [&quot;好&quot;]}，或按标签顺序排列的列表。文件内容与此相同（.json），或每行写一个标签的词。留空则用标签自己的名称。</translation>
    </message>
    <message>
        <source>What answers for a label. manual: its words; soft: a trained row, which starts as the mean of its words&apos; rows. A row may come to mean what no word says, and wants more texts for that.</source>
        <translation>由什么来回答标签。manual：标签的词；soft：一行可训练的权重，其初值是这些词对应行的平均值。这一行可以学到没有词能表达的含义，但需要更多文本。</translation>
    </message>
    <message>
        <source>Adapter scale</source>
        <translation>适配器的系数</translation>
    </message>
    <message>
        <source>Adapter size</source>
        <translation>适配器的大小</translation>
    </message>
    <message>
        <source>Columns between the two maps of an adapter. auto is what OpenDelta takes: 24 for adapter and parallel_adapter, of the model&apos;s width a 32nd for low_rank_adapter and a 16th for compacter. A larger one learns more and takes more memory.</source>
        <translation>适配器两个映射之间的列数。auto 取 OpenDelta 的值：adapter 和 parallel_adapter 为 24，low_rank_adapter 为模型宽度的 1/32，compacter 为 1/16。越大学得越多，占用的内存也越多。</translation>
    </message>
    <message>
        <source>Compacter terms</source>
        <translation>Compacter 的项数</translation>
    </message>
    <message>
        <source>Lengths of rows (DoRA)</source>
        <translation>行的长度（DoRA）</translation>
    </message>
    <message>
        <source>Terms n of the sums of Kronecker products that the maps of compacter are. It divides the model&apos;s width and adapter_size. More terms mix more, and have n^3 parameters in each map.</source>
        <translation>compacter 的映射是克罗内克积之和，n 为其项数。它须整除模型的宽度和 adapter_size。项数越多，混合得越充分，每个映射为此有 n^3 个参数。</translation>
    </message>
    <message>
        <source>Trains the length of each row of W + s B A, too, apart from its direction (DoRA). A small rank then learns about what a larger one would. It takes more time and memory: the norms of all adapted rows are found again in each forward.</source>
        <translation>除方向外，还训练 W + s B A 每一行的长度（DoRA）。较小的秩便能学到较大的秩大约能学到的。它需要更多时间和内存：每次前向都要重新求出所有被适配的行的范数。</translation>
    </message>
    <message>
        <source>What a parallel adapter gives is multiplied by it. 4 is usual beside feed-forwards of large models.</source>
        <translation>并列适配器给出的结果乘以它。在大模型的前馈旁通常为 4。</translation>
    </message>
    <message>
        <source>terms</source>
        <translation>项</translation>
    </message>
    <message>
        <source>Parameters that are trained. full: all, or those that freeze leaves. lora: low-rank matrices beside the linear maps (lora_r, lora_targets), and a new head; the model itself stays as it is, has no gradients and no states, and the result is an adapter of some megabytes in PEFT&apos;s format. bitfit: the biases alone. soft_prompt: virtual tokens before each text (num_virtual_tokens). adapter: two small maps behind each attention and feed-forward (Houlsby); parallel_adapter: beside them; low_rank_adapter and compacter: with fewer parameters still. Adapters take much less memory, and learn less where the task is far from what the model knows.</source>
        <translation>要训练的参数。full：全部，或 freeze 留下的那些。lora：线性层旁的低秩矩阵（lora_r、lora_targets）以及新的输出头；模型本身保持不变，没有梯度也没有状态，结果是 PEFT 格式、几兆字节的适配器。bitfit：只训练偏置。soft_prompt：每段文本之前的虚拟词元（num_virtual_tokens）。adapter：每个注意力和前馈之后的两个小映射（Houlsby）；parallel_adapter：与它们并列；low_rank_adapter 和 compacter：参数更少。适配器占用的内存少得多；若任务与模型已知的内容相差很远，学到的也较少。</translation>
    </message>
    <message>
        <source>Quantises the scales of quantization = nf4, too (QLoRA&apos;s double quantisation): a byte a scale, and so 4.13 bits a weight in place of 4.5. Values are then off by a little more.</source>
        <translation>把 quantization = nf4 的缩放系数也量化（双重量化）：每个系数一个字节，每个权重 4.13 位，而不是 4.5 位。数值的误差会略大一些。</translation>
    </message>
    <message>
        <source>Scales of nf4 in fewer bits</source>
        <translation>用更少的位存储 nf4 的缩放系数</translation>
    </message>
    <message>
        <source>Storage of the frozen matrices of the layers while adapters are trained. none: in the type of compute, which is exact, and streams from host memory where the GPU has no room. int8 (LLM.int8): half of that; nf4 (QLoRA): a quarter. stored: the blocks of the model&apos;s files (GGUF&apos;s Q8_0, Q4_0, Q4_1, Q4_K and Q6_K, and MXFP4), bit for bit. A model that is quantised already is taken as it is. Fewer bits are for runs that 16 bits are too slow or too large for: the model that is adapted is then off by what quantisation loses, and the adapter learns to make up for it.</source>
        <translation>训练适配器时，各层冻结矩阵的存储方式。none：与计算类型相同，没有误差，显存不足时从主机内存流式读取。int8：一半大小；nf4：四分之一大小。stored：原样保留模型文件中的量化块（GGUF 的 Q8_0、Q4_0、Q4_1、Q4_K、Q6_K 以及 MXFP4），逐位相同。已经量化的模型按原样使用。更少的位数适用于 16 位太慢或太大的训练：被适配的模型会有量化带来的误差，适配器会学着弥补。</translation>
    </message>
</context>
<context>
    <name>service</name>
    <message>
        <source>the run has no process</source>
        <translation>该运行没有进程</translation>
    </message>
    <message>
        <source>it is not known yet whether its process lives on the other machine</source>
        <translation>尚不清楚其进程是否在另一台机器上运行</translation>
    </message>
    <message>
        <source>all steps are done</source>
        <translation>所有步骤已完成</translation>
    </message>
    <message>
        <source>it waits for room on the disk</source>
        <translation>正在等待磁盘空间</translation>
    </message>
    <message>
        <source>it writes its end</source>
        <translation>正在写入结果</translation>
    </message>
    <message>
        <source>it takes requests once it trains</source>
        <translation>开始训练后才接受请求</translation>
    </message>
    <message>
        <source>its process is on another machine</source>
        <translation>其进程在另一台机器上</translation>
    </message>
    <message>
        <source>it has no prompts to go on with</source>
        <translation>它没有可续写的提示</translation>
    </message>
    <message>
        <source>it is paused: resume it first</source>
        <translation>已暂停：请先继续</translation>
    </message>
    <message>
        <source>it is given a minute after a stop was asked for</source>
        <translation>请求停止后会等待一分钟</translation>
    </message>
    <message>
        <source>its process runs: stop it first</source>
        <translation>其进程正在运行：请先停止</translation>
    </message>
    <message>
        <source>its run.json cannot be read</source>
        <translation>无法读取其 run.json</translation>
    </message>
    <message>
        <source>it is finished</source>
        <translation>已完成</translation>
    </message>
    <message>
        <source>it can be given more steps</source>
        <translation>可以增加步数</translation>
    </message>
    <message>
        <source>its directory cannot be written to</source>
        <translation>无法写入其目录</translation>
    </message>
    <message>
        <source>it is not finished</source>
        <translation>尚未完成</translation>
    </message>
    <message>
        <source>it has no checkpoint to go on from</source>
        <translation>没有可继续的检查点</translation>
    </message>
    <message>
        <source>its directory cannot be removed</source>
        <translation>无法删除其目录</translation>
    </message>
    <message>
        <source>it is paused already</source>
        <translation>已经暂停</translation>
    </message>
    <message>
        <source>it is not paused</source>
        <translation>未暂停</translation>
    </message>
    <message>
        <source>stopped after saving</source>
        <translation>保存后停止</translation>
    </message>
    <message>
        <source>stopped without saving</source>
        <translation>未保存即停止</translation>
    </message>
    <message>
        <source>paused after step %1</source>
        <translation>在第 %1 步后暂停</translation>
    </message>
    <message>
        <source>the GPU&apos;s memory is free after step %1</source>
        <translation>第 %1 步后已释放 GPU 内存</translation>
    </message>
    <message>
        <source>resumed after step %1</source>
        <translation>在第 %1 步后继续</translation>
    </message>
    <message>
        <source>%1 micro-batch of %2</source>
        <translation>%1 个微批，每个 %2 个样本</translation>
    </message>
    <message>
        <source>%1 micro-batches of %2</source>
        <translation>%1 个微批，每个 %2 个样本</translation>
    </message>
    <message>
        <source>%1 micro-batches of %2, all through a block before the next block</source>
        <translation>%1 个微批，每个 %2 个样本，全部通过一个块后再进入下一个块</translation>
    </message>
    <message>
        <source>weights and states in memory</source>
        <translation>权重和状态在内存中</translation>
    </message>
    <message>
        <source>weights and states on the GPU</source>
        <translation>权重和状态在 GPU 上</translation>
    </message>
    <message>
        <source>weights and states on the host, the weights on the GPU, too</source>
        <translation>权重和状态在主机上，权重同时也在 GPU 上</translation>
    </message>
    <message>
        <source>weights and states on the host, streamed block by block</source>
        <translation>权重和状态在主机上，逐块传输</translation>
    </message>
    <message>
        <source>weights and states on the host, streamed block by block but for %1 whose weights stay on the GPU</source>
        <translation>权重和状态在主机上，逐块传输，其中 %1 块的权重留在 GPU 上</translation>
    </message>
    <message>
        <source>weights and states on the host, streamed block by block but for the states of %1 that stay on the GPU, which updates them</source>
        <translation>权重和状态在主机上，逐块传输，其中 %1 块的状态留在 GPU 上并由它更新</translation>
    </message>
    <message>
        <source>weights and states of %1 of %2 blocks on the GPU, of the others on the host, streamed block by block</source>
        <translation>%2 块中 %1 块的权重和状态在 GPU 上，其余在主机上，逐块传输</translation>
    </message>
    <message>
        <source>states of %1 of %2 blocks on NVMe</source>
        <translation>%2 块中 %1 块的状态在 NVMe 上</translation>
    </message>
    <message>
        <source>weights of %1 of %2 blocks on NVMe</source>
        <translation>%2 块中 %1 块的权重在 NVMe 上</translation>
    </message>
    <message>
        <source>gradients of %1 of %2 blocks on NVMe</source>
        <translation>%2 块中 %1 块的梯度在 NVMe 上</translation>
    </message>
    <message>
        <source>saved tensors kept</source>
        <translation>激活值全部保留</translation>
    </message>
    <message>
        <source>saved tensors kept but for the largest</source>
        <translation>激活值保留，最大的除外</translation>
    </message>
    <message>
        <source>saved tensors recomputed</source>
        <translation>激活值重新计算</translation>
    </message>
    <message>
        <source>saved tensors on the host</source>
        <translation>激活值放在主机上</translation>
    </message>
    <message>
        <source>outputs of blocks on the host</source>
        <translation>各块的输出放在主机上</translation>
    </message>
    <message>
        <source>finished</source>
        <translation>已完成</translation>
    </message>
    <message>
        <source>stopped as asked</source>
        <translation>已按要求停止</translation>
    </message>
    <message>
        <source>rows by label: %1</source>
        <translation>各标签的行数：%1</translation>
    </message>
    <message>
        <source>%1: text is column &apos;%2&apos;, label is column &apos;%3&apos;</source>
        <translation>%1：文本列为“%2”，标签列为“%3”</translation>
    </message>
    <message>
        <source>%1: text is column &apos;%2&apos;</source>
        <translation>%1：文本列为“%2”</translation>
    </message>
    <message>
        <source>%1 label: %2</source>
        <translation>%1 个标签：%2</translation>
    </message>
    <message>
        <source>%1 labels: %2</source>
        <translation>%1 个标签：%2</translation>
    </message>
    <message>
        <source>%1 labels, any number of them per text: %2</source>
        <translation>%1 个标签，每条文本可有任意多个：%2</translation>
    </message>
    <message>
        <source>labels are numbers to predict (regression)</source>
        <translation>标签是要预测的数值（回归）</translation>
    </message>
    <message>
        <source>no labels</source>
        <translation>没有标签</translation>
    </message>
    <message>
        <source>the longest text has %1 tokens: planned for %2, not for %3</source>
        <translation>最长文本有 %1 个词元：按 %2 规划，而不是 %3</translation>
    </message>
    <message>
        <source>no NVIDIA GPU: training runs on the CPU</source>
        <translation>没有 NVIDIA GPU：在 CPU 上训练</translation>
    </message>
    <message>
        <source>models/ here</source>
        <translation>此处的 models/</translation>
    </message>
    <message>
        <source>Hugging Face&apos;s cache</source>
        <translation>Hugging Face 的缓存</translation>
    </message>
    <message>
        <source>Python packages</source>
        <translation>Python 软件包</translation>
    </message>
    <message>
        <source>accuracy</source>
        <translation>准确率</translation>
    </message>
    <message>
        <source>exact match</source>
        <translation>完全匹配率</translation>
    </message>
    <message>
        <source>f1</source>
        <translation>F1</translation>
    </message>
    <message>
        <source>f1 macro</source>
        <translation>宏平均 F1</translation>
    </message>
    <message>
        <source>f1 micro</source>
        <translation>微平均 F1</translation>
    </message>
    <message>
        <source>loss</source>
        <translation>损失</translation>
    </message>
    <message>
        <source>matthews correlation</source>
        <translation>马修斯相关系数</translation>
    </message>
    <message>
        <source>mean absolute error</source>
        <translation>平均绝对误差</translation>
    </message>
    <message>
        <source>mean squared error</source>
        <translation>均方误差</translation>
    </message>
    <message>
        <source>pearson</source>
        <translation>皮尔逊相关系数</translation>
    </message>
    <message>
        <source>perplexity</source>
        <translation>困惑度</translation>
    </message>
    <message>
        <source>precision</source>
        <translation>精确率</translation>
    </message>
    <message>
        <source>recall</source>
        <translation>召回率</translation>
    </message>
    <message>
        <source>spearman</source>
        <translation>斯皮尔曼相关系数</translation>
    </message>
    <message>
        <source>GPU memory</source>
        <translation>显存</translation>
    </message>
    <message>
        <source>host memory</source>
        <translation>主机内存</translation>
    </message>
    <message>
        <source>published figures and the assumptions below; nothing of it was measured on such a machine</source>
        <translation>公开数据和下列假设；没有任何一项在这样的机器上测量过</translation>
    </message>
    <message>
        <source>measured %1 by ferry %2</source>
        <translation>于 %1 由 ferry %2 测量</translation>
    </message>
    <message>
        <source>paused</source>
        <translation>已暂停</translation>
    </message>
    <message>
        <source>this driver cannot give the GPU&apos;s memory back before the end after step %1</source>
        <translation>在第 %1 步之后，此驱动在结束前无法释放 GPU 显存</translation>
    </message>
    <message>
        <source>stops after step %1, unsaved</source>
        <translation>在第 %1 步后停止，不保存</translation>
    </message>
    <message>
        <source>the run has ended</source>
        <translation>该运行已结束</translation>
    </message>
    <message>
        <source>the run is paused: resume it first</source>
        <translation>该运行已暂停：请先继续</translation>
    </message>
    <message>
        <source>the run is paused already</source>
        <translation>该运行已经暂停</translation>
    </message>
    <message>
        <source>the run is not paused</source>
        <translation>该运行没有暂停</translation>
    </message>
    <message>
        <source>weights and states of %1 of %2 blocks on the GPU, of the others on the host, the weights on the GPU, too</source>
        <translation>%2 块中 %1 块的权重和状态在 GPU 上，其余在主机上，权重同时也在 GPU 上</translation>
    </message>
    <message>
        <source>weights and states of %1 of %2 blocks on the GPU, of the others on the host, streamed block by block but for %3 whose weights stay on the GPU</source>
        <translation>%2 块中 %1 块的权重和状态在 GPU 上，其余在主机上，逐块传输，其中 %3 块的权重留在 GPU 上</translation>
    </message>
    <message>
        <source>weights and states of %1 of %2 blocks on the GPU, of the others on the host, streamed block by block but for the states of %3 that stay on the GPU, which updates them</source>
        <translation>%2 块中 %1 块的权重和状态在 GPU 上，其余在主机上，逐块传输，其中 %3 块的状态留在 GPU 上并由 GPU 更新</translation>
    </message>
    <message>
        <source>saved tensors of the last %1 of %2 blocks kept, of the others kept but for the largest</source>
        <translation>%2 块中最后 %1 块的激活值保留，其余保留，最大的除外</translation>
    </message>
    <message>
        <source>saved tensors of the last %1 of %2 blocks kept but for the largest, of the others recomputed</source>
        <translation>%2 块中最后 %1 块的激活值保留，最大的除外，其余重新计算</translation>
    </message>
    <message>
        <source>%1 of the GPU would have to go to host memory, and %2 are free; `ferry runs stop` saves and leaves</source>
        <translation>需要把 GPU 上的 %1 移到主机内存，而空闲的只有 %2；请选择“停止并保存”</translation>
    </message>
    <message>
        <source>the run continues: %1</source>
        <translation>该运行继续：%1</translation>
    </message>
    <message>
        <source>it stays paused: %1</source>
        <translation>保持暂停：%1</translation>
    </message>
    <message>
        <source>%1 stays as it is while the run goes on; learning_rate, weight_decay, max_grad_norm and eval_steps can change</source>
        <translation>%1 在运行期间保持不变；可以更改 learning_rate、weight_decay、max_grad_norm 和 eval_steps</translation>
    </message>
    <message>
        <source>%1 = %2 from step %3 on</source>
        <translation>从第 %3 步起 %1 = %2</translation>
    </message>
    <message>
        <source>&apos;%1&apos; is nothing that a run does</source>
        <translation>运行不会做“%1”</translation>
    </message>
    <message>
        <source>an integer of at least %1 and below %2</source>
        <translation>整数，至少 %1 且小于 %2</translation>
    </message>
    <message>
        <source>an integer of at least %1 and at most %2</source>
        <translation>整数，至少 %1 且至多 %2</translation>
    </message>
    <message>
        <source>an integer of at least %1</source>
        <translation>整数，至少 %1</translation>
    </message>
    <message>
        <source>an integer of at most %1</source>
        <translation>整数，至多 %1</translation>
    </message>
    <message>
        <source>an integer</source>
        <translation>整数</translation>
    </message>
    <message>
        <source>a number of at least %1 and below %2</source>
        <translation>数值，至少 %1 且小于 %2</translation>
    </message>
    <message>
        <source>a number of at least %1 and at most %2</source>
        <translation>数值，至少 %1 且至多 %2</translation>
    </message>
    <message>
        <source>a number of at least %1</source>
        <translation>数值，至少 %1</translation>
    </message>
    <message>
        <source>a number of at most %1</source>
        <translation>数值，至多 %1</translation>
    </message>
    <message>
        <source>a number</source>
        <translation>数值</translation>
    </message>
    <message>
        <source>a size such as 11GiB of at least %1 and below %2</source>
        <translation>大小（例如 11GiB），至少 %1 且小于 %2</translation>
    </message>
    <message>
        <source>a size such as 11GiB of at least %1 and at most %2</source>
        <translation>大小（例如 11GiB），至少 %1 且至多 %2</translation>
    </message>
    <message>
        <source>a size such as 11GiB of at least %1</source>
        <translation>大小（例如 11GiB），至少 %1</translation>
    </message>
    <message>
        <source>a size such as 11GiB of at most %1</source>
        <translation>大小（例如 11GiB），至多 %1</translation>
    </message>
    <message>
        <source>a size such as 11GiB</source>
        <translation>大小（例如 11GiB）</translation>
    </message>
    <message>
        <source>one of %1</source>
        <translation>以下之一：%1</translation>
    </message>
    <message>
        <source>a time such as 90s, 30min or 8h, at most %1</source>
        <translation>时间，例如 90s、30min 或 8h，最多 %1</translation>
    </message>
    <message>
        <source>a whole number of steps, or a share of all steps from 0 to below 1</source>
        <translation>整数步数，或占全部步数的比例（0 到 1，不含 1）</translation>
    </message>
    <message>
        <source>a whole number of steps, a share of all steps from 0 to below 1, or a time such as 30min</source>
        <translation>整数步数、占全部步数的比例（0 到 1，不含 1），或时间，例如 30min</translation>
    </message>
    <message>
        <source>text</source>
        <translation>文本</translation>
    </message>
    <message>
        <source>a path</source>
        <translation>路径</translation>
    </message>
    <message>
        <source>true or false</source>
        <translation>&apos;true&apos; 或 &apos;false&apos;</translation>
    </message>
    <message>
        <source>items separated by commas</source>
        <translation>用逗号分隔的各项</translation>
    </message>
    <message>
        <source>groups such as &apos;classifier.*:lr=1e-4,decay=0&apos;, separated by ;</source>
        <translation>分组，例如 &apos;classifier.*:lr=1e-4,decay=0&apos;，用 ; 分隔</translation>
    </message>
    <message>
        <source>ferry-trainer, the half that trains, is not beside ferry</source>
        <translation>未找到 Ferry 的训练程序</translation>
    </message>
    <message>
        <source>the CPU kernels run without vectors (scalar)</source>
        <translation>CPU 计算内核未使用向量指令</translation>
    </message>
    <message>
        <source>no presets were found</source>
        <translation>未找到预设</translation>
    </message>
    <message>
        <source>only %1 of host memory may be used; small models need about %2</source>
        <translation>只能使用 %1 主机内存；小模型约需 %2</translation>
    </message>
    <message>
        <source>a cgroup limits memory to %1 of %2</source>
        <translation>cgroup 将内存限制为 %1（共 %2）</translation>
    </message>
    <message>
        <source>%1 are swapped out: memory was short</source>
        <translation>已有 %1 被换出：内存曾经不足</translation>
    </message>
    <message>
        <source>only %1 are free on the disk of the current directory</source>
        <translation>当前目录所在磁盘只剩 %1 可用</translation>
    </message>
    <message>
        <source>this is WSL: Windows keeps back half of the memory and limits what can be pinned</source>
        <translation>这是 WSL：Windows 会保留一半内存，并限制可锁定的内存</translation>
    </message>
    <message>
        <source>there is an NVIDIA GPU, but no driver</source>
        <translation>有 NVIDIA GPU，但没有驱动</translation>
    </message>
    <message>
        <source>the NVIDIA driver does not answer: %1</source>
        <translation>NVIDIA 驱动没有响应：%1</translation>
    </message>
    <message>
        <source>the NVIDIA driver sees no GPU: training runs on the CPU</source>
        <translation>NVIDIA 驱动未发现 GPU：在 CPU 上训练</translation>
    </message>
    <message>
        <source>CUDA_VISIBLE_DEVICES hides every GPU</source>
        <translation>CUDA_VISIBLE_DEVICES 隐藏了所有 GPU</translation>
    </message>
    <message>
        <source>%1 has compute capability %2; CUDA 13 and LibTorch need %3 (Turing) or newer</source>
        <translation>%1 的计算能力为 %2；CUDA 13 和 LibTorch 需要 %3（Turing）或更高</translation>
    </message>
    <message>
        <source>%1 has compute capability %2, and this build holds GPU code for %3</source>
        <translation>%1 的计算能力为 %2，而此版本只含 %3 的 GPU 代码</translation>
    </message>
    <message>
        <source>NVIDIA driver %1 is too old: CUDA %2 needs %3 or newer</source>
        <translation>NVIDIA 驱动 %1 过旧：CUDA %2 需要 %3 或更高版本</translation>
    </message>
    <message>
        <source>this build has no CUDA</source>
        <translation>此版本不含 CUDA</translation>
    </message>
    <message>
        <source>the figures are of another machine than this one: %1</source>
        <translation>数据来自另一台机器：%1</translation>
    </message>
    <message>
        <source>the system pins %1 of host memory at most; copies of more go through a ring of pinned slots, which takes longer</source>
        <translation>系统最多锁定 %1 主机内存；超出部分经由锁定的环形缓冲复制，耗时更长</translation>
    </message>
    <message>
        <source>locked memory is limited to %1; a run pins up to %2, and pinning failed here</source>
        <translation>锁定内存上限为 %1；一个运行最多锁定 %2，而在本机锁定失败</translation>
    </message>
    <message>
        <source>locked memory is limited to %1; a run pins up to %2</source>
        <translation>锁定内存上限为 %1；一个运行最多锁定 %2</translation>
    </message>
    <message>
        <source>no host memory could be pinned for copies to the GPU</source>
        <translation>无法锁定用于复制到 GPU 的主机内存</translation>
    </message>
    <message>
        <source>copies to and from %1 reach %2 GB/s; PCIe %3 x%4 gives %5</source>
        <translation>与 %1 之间的复制速度为 %2 GB/s；PCIe %3 x%4 可达 %5</translation>
    </message>
    <message>
        <source>AdamW moves %1 GB/s where memory gives %2</source>
        <translation>AdamW 的速度为 %1 GB/s，而内存可达 %2</translation>
    </message>
    <message>
        <source>the disk here writes %1 MB/s: checkpoints take long</source>
        <translation>此处磁盘的写入速度为 %1 MB/s：保存检查点会很慢</translation>
    </message>
    <message>
        <source>%1 drives the display: what the desktop holds of its memory is not free, and may grow during a run</source>
        <translation>%1 连接着显示器：桌面占用的显存不可用，并且在运行期间可能增加</translation>
    </message>
    <message>
        <source>transparent huge pages are off: AdamW and pinning are slower on small pages</source>
        <translation>透明大页已关闭：在小页上 AdamW 和内存锁定更慢</translation>
    </message>
    <message>
        <source>this machine could not be measured: %1</source>
        <translation>无法测量本机：%1</translation>
    </message>
    <message>
        <source>the drives of nvme_path could not be measured: %1</source>
        <translation>无法测量 nvme_path 的硬盘：%1</translation>
    </message>
    <message>
        <source>the profile could not be stored: %1</source>
        <translation>无法保存配置文件：%1</translation>
    </message>
    <message>
        <source>; </source>
        <translation>；</translation>
    </message>
    <message>
        <source>%1 of %2 texts have no token to learn, first in text %3</source>
        <translation>%2 条文本中有 %1 条没有可学习的词元，首先是第 %3 条</translation>
    </message>
    <message>
        <source>raise max_length, or look at them with `ferry preview`</source>
        <translation>调大 max_length，或在预览中查看</translation>
    </message>
    <message>
        <source>%1 of %2 answers have no end token among what is learnt, first in text %3</source>
        <translation>%2 个回答中有 %1 个学不到结束标记，首先在第 %3 条</translation>
    </message>
    <message>
        <source>the model would not learn to stop: mend the chat template&apos;s generation marks, or name the end token in tokenizer_config.json</source>
        <translation>模型学不会停止：请修正对话模板的生成标记，或在 tokenizer_config.json 中指定结束标记</translation>
    </message>
    <message>
        <source>%1 of %2 texts are cut to max_length, first in text %3</source>
        <translation>%2 条文本中有 %1 条被截断到 max_length，首先是第 %3 条</translation>
    </message>
    <message>
        <source>their ends are not learnt: raise max_length</source>
        <translation>它们的结尾学不到：请调大 max_length</translation>
    </message>
    <message>
        <source>%1 of %2 answers are empty, first in text %3</source>
        <translation>%2 个回答中有 %1 个为空，首先在第 %3 条</translation>
    </message>
    <message>
        <source>leave these rows out</source>
        <translation>去掉这些行</translation>
    </message>
    <message>
        <source>%1 of %2 texts are empty, first in text %3</source>
        <translation>%2 条文本中有 %1 条为空，首先是第 %3 条</translation>
    </message>
    <message>
        <source>leave these rows out, or name the right column</source>
        <translation>去掉这些行，或指定正确的列</translation>
    </message>
    <message>
        <source>the data or the template writes it, and the tokenizer, too: take it out of one</source>
        <translation>数据或模板写了它，分词器又写了一次：请去掉其中之一</translation>
    </message>
    <message>
        <source>the tokenizer puts it before every text, so the model knows no others: add it to the chat template</source>
        <translation>分词器在每条文本前都加上它，模型没见过别的形式：请把它加入对话模板</translation>
    </message>
    <message>
        <source>there is nothing to learn: are the data sorted, or is it the wrong column?</source>
        <translation>没有可学习的内容：数据是否排过序，或者列选错了？</translation>
    </message>
    <message>
        <source>the model cannot learn them: shuffle the data, or add such texts</source>
        <translation>模型学不到它们：请打乱数据，或加入这样的文本</translation>
    </message>
    <message>
        <source>%1 of %2 texts are there before, first in text %3</source>
        <translation>%2 条文本中有 %1 条是重复的，首先是第 %3 条</translation>
    </message>
    <message>
        <source>they count twice, and hide what the model has learnt by heart: leave them out</source>
        <translation>它们被重复计算，并掩盖模型死记硬背的内容：请去掉</translation>
    </message>
    <message>
        <source>%1 of %2 texts are there before with another label, first in text %3</source>
        <translation>%2 条文本中有 %1 条以另一个标签出现过，首先是第 %3 条</translation>
    </message>
    <message>
        <source>no model can learn both</source>
        <translation>没有模型能同时学会两者</translation>
    </message>
    <message>
        <source>%1 of %2 texts to evaluate are trained on, too, first in text %3</source>
        <translation>%2 条评估文本中有 %1 条也用于训练，首先是第 %3 条</translation>
    </message>
    <message>
        <source>their scores say nothing of new texts: leave them out of one</source>
        <translation>它们的得分说明不了新文本的情况：请从其中一处去掉</translation>
    </message>
    <message>
        <source>learning_rate is %1, and such trainings mostly have about %2</source>
        <translation>learning_rate 为 %1，而这类训练通常约为 %2</translation>
    </message>
    <message>
        <source>the loss would most likely run away</source>
        <translation>损失很可能会发散</translation>
    </message>
    <message>
        <source>it would hardly learn</source>
        <translation>它几乎学不到东西</translation>
    </message>
    <message>
        <source>packing gains nothing: no two of %1 texts fit into %2 tokens</source>
        <translation>打包没有用处：%1 条文本中没有两条能放进 %2 个词元</translation>
    </message>
    <message>
        <source>raise max_length, or leave packing out</source>
        <translation>调大 max_length，或不用打包</translation>
    </message>
    <message>
        <source>choose another with --chat-template, or leave these turns out</source>
        <translation>用 --chat-template 换一个模板，或去掉这些轮次</translation>
    </message>
    <message>
        <source>%1 of %2 answers have thinking that the template leaves out, first in text %3</source>
        <translation>%2 个回答中有 %1 个的思考过程被模板略去，首先在第 %3 条</translation>
    </message>
    <message>
        <source>choose another with --chat-template, or write it into the answer</source>
        <translation>用 --chat-template 换一个模板，或把它写进回答</translation>
    </message>
    <message>
        <source>train_on_turns = all trains what tools return, too</source>
        <translation>训练所有轮次时，工具返回的内容也会被训练</translation>
    </message>
    <message>
        <source>the model would learn to make up results: --train-on-turns each</source>
        <translation>模型会学着编造结果：--train-on-turns each</translation>
    </message>
    <message>
        <source>chat_template.jinja and tokenizer_config.json have two different chat templates</source>
        <translation>chat_template.jinja 和 tokenizer_config.json 中的对话模板不一样</translation>
    </message>
    <message>
        <source>older programs read the second: make both the same</source>
        <translation>较旧的程序读取后者：请使两者一致</translation>
    </message>
    <message>
        <source>leave chat_template out to go on with its own</source>
        <translation>不设 chat_template 就沿用它自己的模板</translation>
    </message>
    <message>
        <source>%1 of %2 texts begin with %3 twice, first in text %4</source>
        <translation>%2 条文本中有 %1 条以两个 %3 开头，首先是第 %4 条</translation>
    </message>
    <message>
        <source>%1 of %2 texts do not begin with %3, first in text %4</source>
        <translation>%2 条文本中有 %1 条不以 %3 开头，首先是第 %4 条</translation>
    </message>
    <message>
        <source>answers end with %1, at which generation_config.json does not stop</source>
        <translation>回答以 %1 结束，而 generation_config.json 遇到它并不停止</translation>
    </message>
    <message>
        <source>other programs would go on behind the answer: add %1 to its eos_token_id</source>
        <translation>其他程序会在回答之后继续生成：请把 %1 加入它的 eos_token_id</translation>
    </message>
    <message>
        <source>all texts that are trained on have the label %1</source>
        <translation>所有训练文本的标签都是 %1</translation>
    </message>
    <message>
        <source>the evaluation has labels that no trained text has: %1</source>
        <translation>评估数据中有训练文本没有的标签：%1</translation>
    </message>
    <message>
        <source>%1 of %2 turns of role %3 are left out by the template, first in text %4</source>
        <translation>角色 %3 的 %2 个轮次中有 %1 个被模板略去，首先在第 %4 条</translation>
    </message>
    <message>
        <source>chats are written by the template %1, and the model was made for another template, its own</source>
        <translation>对话按模板 %1 书写，而模型是按它自己的另一个模板制作的</translation>
    </message>
    <message>
        <source>%1: chats of &apos;%2&apos; and &apos;%3&apos;</source>
        <translation>%1：对话由 &apos;%2&apos; 和 &apos;%3&apos; 组成</translation>
    </message>
    <message>
        <source>%1: chats of &apos;%2&apos;</source>
        <translation>%1：对话来自 &apos;%2&apos;</translation>
    </message>
    <message>
        <source>%1: not read: %2</source>
        <translation>%1：未读取 %2</translation>
    </message>
</context>
</TS>
